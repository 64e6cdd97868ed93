"""The ops of a small transformer as a dialect of its own."""

import shardy_py as sdy

toy = sdy.Dialect("toy")

toy.op("toy.add", rule="..., ... -> ...", traits=[sdy.Elementwise, sdy.Pure], emission="x, y -> x + y")
toy.op("toy.zeros", traits=[sdy.ConstantLike, sdy.Pure], local=sdy.local_by_types)
toy.op("toy.window", rule="i j -> i j", need_replication="j", traits=[sdy.ConstantFoldable, sdy.Pure])
toy.op("toy.matmul", rule="... k, k j -> ... j", reduction="k", traits=[sdy.Pure])
# Every element needs the sum of squares of its row, and the weights go along the row.
toy.op("toy.rms_norm", rule="... d, d -> ... d", need_replication="d", traits=[sdy.Pure])
# Values and indices: the k largest of n, all of which one device has to see.
toy.op("toy.top_k", rule="... n -> ... k, ... k", need_replication=("n", "k"), traits=[sdy.Pure])


@toy.op("toy.attention", traits=[sdy.Pure])
def attention(op):
    """Query heads come in groups that share the heads of keys and values; the softmax needs all scores of a row."""
    query, key = op.operands[0].type.shape, op.operands[1].type.shape
    spec = "b (h g) s d, b h t d, b h t e -> b (h g) s e"
    return sdy.rule(spec, g=query[1] // key[1], need_replication=("t", "d"))


toy.op("toy.loop", traits=[sdy.RecursiveMemoryEffects], data_flow=sdy.LoopDataFlow())
toy.op("toy.yield", traits=[sdy.IsTerminator, sdy.Pure])


@sdy.hookimpl
def shardy_register_dialects():
    """Return the dialect."""
    return [toy]

"""Deliberate mistakes in plugins: what is written, and a part of what is said about it.

Each body stands between the lines that make the dialect ``toy`` and the hook that gives it. The program has the ops
``toy.f``, from a tensor to one of the same type, ``toy.loop`` around ``toy.yield``, and nothing else of the dialect.
"""

RULE = """@toy.op("toy.f")
def f(op):
    """
FLOW = """class Flow(sdy.LoopDataFlow):
    {}

toy.op("toy.loop", data_flow=Flow())
"""
COST = """class Cost(CostOpInterface):
    {}

toy.op("toy.f", traits=[sdy.Elementwise], cost=Cost())
"""
PASS = """class Sweep:
    name = "toy-sweep"
    runs_before = "sdy-constant-or-scalar-splitter"
    {}

@sdy.hookimpl
def shardy_register_passes():
    return [Sweep]
"""
SCHEDULE = """@sdy.hookimpl
def shardy_register_schedules():
    return {}
"""
SELF = "def {}(self, op{}):\n        {}"


def rule(text):
    """Return a plugin with a rule function that does something."""
    return RULE + text


def build(text):
    """Return a plugin with a rule function that builds a rule."""
    return rule(f"b = sdy.OpShardingRuleBuilder.for_op(op)\n    {text}\n    return b.build()")


def flow(method, arguments, text):
    """Return a plugin with a data flow that has one method of its own."""
    return FLOW.format(SELF.format(method, arguments, text))


def cost(method, text):
    """Return a plugin with a cost that has one method."""
    return COST.format(SELF.format(method, "", text))


RULES = {
    "the rule raises": (rule("return op.attributes['axis']"), "raised KeyError: 'axis'"),
    "the rule raises deep inside": (
        "def helper(op):\n    return 1 // 0\n" + rule("return helper(op)"),
        "raised ZeroDivisionError",
    ),
    "the rule recurses": (rule("return f(op)"), "raised RecursionError"),
    "the rule exits": (rule("import sys; sys.exit(1)"), "raised SystemExit: 1"),
    "the rule raises no Exception": (
        "class Odd(BaseException): pass\n" + rule("raise Odd('x')"),
        "raised Odd: x",
    ),
    "the rule raises an error that cannot be shown": (
        "class Odd(Exception):\n    def __str__(self): raise self\n" + rule("raise Odd"),
        "raised Odd",
    ),
    "the rule is a text": (rule("return 'i j -> i j'"), "returned 'i j -> i j', not an OpShardingRule"),
    "the rule is a list": (rule("return [[0, 1]]"), "returned [[0, 1]], not an OpShardingRule"),
    "the rule is a builder": (
        rule("return sdy.OpShardingRuleBuilder.for_op(op)"),
        "not an OpShardingRule",
    ),
    "the rule is a class": (rule("return sdy.OpShardingRule"), "returned the class OpShardingRule"),
    "the rule cannot be shown": (
        "class Odd:\n    def __repr__(self): raise ValueError\n" + rule("return Odd()"),
        "returned an Odd",
    ),
    "the rule is for other shapes": (rule("return sdy.rule('i -> i')"), "rank"),
    "the rule is for other operands": (rule("return sdy.rule('i j, i j -> i j')"), "operands"),
    "the rule has no text": (rule("return sdy.rule(3)"), "not 3 (int)"),
    "the builder gets a text as a kind": (
        build("b.add_factor([0], [0], 8, kind='reduction')"),
        "reduction",
    ),
    "the builder gets another size": (
        build("b.add_factor([0], [0], 9)"),
        "has size 8, its factors i=9",
    ),
    "the builder gets a dimension that is not there": (
        build("b.add_factor([7], [0], 8)"),
        "operand 0 has no dimension 7",
    ),
    "the builder gets numbers": (build("b.add_factor(0, 0, 8)"), "[0] for one operand"),
    "the builder gets a misspelt kind": (
        build("b.add_factor([0], [0], 8, kind=sdy.FactorKind.REDUCE)"),
        "did you mean REDUCTION?",
    ),
    "a misspelt attribute of the op": (rule("return op.operand[0]"), "did you mean operands"),
    "an attribute that the op lacks": (rule("return op.attributes['dim']"), "the op has no attributes"),
    "a helper without dimensions": ('toy.op("toy.f", rule=sdy.rules.reduction)', "needs dimensions, not RuleOptions"),
    "a misspelt helper": ('toy.op("toy.f", rule=sdy.rules.transposee)', "did you mean transpose?"),
    "a rule in numpy's notation": ('toy.op("toy.f", rule="ij->ij")', "separated by spaces: 'i j'"),
    "a mark in numpy's notation": ('toy.op("toy.f", rule="ij->i", reduction="j")', "are there spaces"),
    "several names in one": ('toy.op("toy.f", rule="i j -> ", reduction="ij")', "separated by spaces or commas: 'i j'"),
    "a misspelt mark of a rule": (rule("return sdy.rule('i j -> i', reductions='j')"), "did you mean reduction?"),
    "another arrow": ('toy.op("toy.f", rule="i j => i j")', "results stand after '->'"),
    "the builder gets too few dimensions": (
        build("b.add_factor([], [0], 8)"),
        "a factor needs one dimension or None per tensor",
    ),
    "the rule is a coroutine": ('@toy.op("toy.f")\nasync def f(op):\n    return None\n', "is a coroutine (async def)"),
    "the rule is a generator": (rule("yield sdy.rule('i j -> i j')"), "is a generator"),
    "a lambda gives a coroutine": (
        "async def g(op): pass\ntoy.op('toy.f', rule=lambda op: g(op))",
        "returned a coroutine",
    ),
    "the rule takes nothing": ('@toy.op("toy.f")\ndef f():\n    return None\n', "does not take its arguments"),
    "the rule takes too much": ('@toy.op("toy.f")\ndef f(a, b, c):\n    return None\n', "missing a required argument"),
    "the rule has keywords only": ('@toy.op("toy.f")\ndef f(*, op):\n    return None\n', "too many positional"),
    "the rule is a class of rules": (
        'class F:\n    def get_sharding_rule(self, op): ...\ntoy.op("toy.f", rule=F)',
        "the rule is the class F, not an object",
    ),
    "the rule object is misspelt": (
        'class F:\n    def get_shardin_rule(self, op): ...\ntoy.op("toy.f", rule=F())',
        "did you mean get_sharding_rule?",
    ),
    "the rule object has no self": (
        'class F:\n    def get_sharding_rule(op): ...\ntoy.op("toy.f", rule=F())',
        "is self missing?",
    ),
    "the rule is a number": ('toy.op("toy.f", rule=3)', "3 is neither a function of the op nor"),
    "a name that is in the other module": (rule("return sdy.PluginInfo"), "PluginInfo is in shardy_py.plugins"),
    "a name that is nowhere": ("sdy.Dialekt('toy')", "did you mean Dialect?"),
    "the rule text is wrong": ('toy.op("toy.f", rule="i j -> i $")', "unexpected '$'"),
    "the rule text has no arrow": ('toy.op("toy.f", rule="i j")', "->"),
    "the rule text is for other ops": ('toy.op("toy.f", rule="i j k -> i j k")', "rank"),
    "the factor does not exist": ('toy.op("toy.f", rule="i j -> i j", reduction="k")', "k"),
    "the marks are a number": ('toy.op("toy.f", rule="i j -> i j", reduction=3)', "reduction is 3, not names"),
    "the marks are numbers": ('toy.op("toy.f", rule="i j -> i j", reduction=[3])', "reduction names 3"),
    "marks without a text": (
        'toy.op("toy.f", rule=lambda op: None, reduction="k")',
        "goes with a rule given as a text only",
    ),
    "rule and data flow": (
        'toy.op("toy.f", rule="i j -> i j", data_flow=sdy.LoopDataFlow())',
        "the op has a rule and a data flow",
    ),
    "rule over data flow": (
        '@toy.op("toy.f", data_flow=sdy.LoopDataFlow())\ndef f(op): ...',
        "the op has a rule and a data flow",
    ),
    "two rules": ('@toy.op("toy.f", rule="i j -> i j")\ndef f(op): ...', "has a rule already"),
    "the decorator is over nothing": ('toy.op("toy.f")(None)', "is over None"),
    "a wildcard has a rule": ('toy.op("toy.*", rule="i -> i")', "can only give traits"),
    "a wildcard has data flow": ('toy.op("toy.*", data_flow=sdy.LoopDataFlow())', "can only give traits"),
}

DEFINITIONS = {
    "no name": ("toy.op('')", "under its full name, not ''"),
    "a number as name": ("toy.op(3)", "under its full name, not 3"),
    "None as name": ("toy.op(None)", "under its full name, not None"),
    "a list as name": ("toy.op(['toy.f'])", "under its full name"),
    "white space in the name": ("toy.op('toy. f')", "no white space"),
    "the decorator without a name": ("@toy.op\ndef f(op): ...", '@dialect.op("dialect.f")'),
    "twice": ("toy.op('toy.f')\ntoy.op('toy.f')", "defines the op twice"),
    "a misspelt argument": ("toy.op('toy.f', trait=[sdy.Pure])", "did you mean traits"),
    "the rule without its name": ("toy.op('toy.f', 'i j -> i j')", "go by their names: rule=..."),
    "a trait as a text": ("toy.op('toy.f', traits=['Elementwise'])", "traits=[sdy.Elementwise]"),
    "a misspelt trait as a text": ("toy.op('toy.f', traits=['Elementwize'])", "did you mean Elementwise?"),
    "traits as a text": ("toy.op('toy.f', traits='Elementwise')", "not a list of traits"),
    "one trait": ("toy.op('toy.f', traits=sdy.Elementwise)", "[Elementwise]"),
    "traits as a number": ("toy.op('toy.f', traits=3)", "not a list of traits"),
    "traits as a function": ("toy.op('toy.f', traits=lambda op: [])", "traits is <function <lambda>>, not a list"),
    "a function in the place of traits": ("toy.op('toy.f', traits=lambda op: [])", "traits_of="),
    "traits as None": ("toy.op('toy.f', traits=None)", "not a list of traits"),
    "an unhashable trait": ("toy.op('toy.f', traits=[[]])", "[] is not a trait"),
    "the class of traits": ("toy.op('toy.f', traits=[sdy.Trait])", "the class Trait is not a trait"),
    "may_have as a text": ("toy.op('toy.f', may_have='Mine')", "may_have is 'Mine', not a list"),
    "contextual as a text": ("toy.op('toy.f', contextual='no')", "not True or False"),
    "contextual takes nothing": ("toy.op('toy.f', contextual=lambda: 1)", "does not take its arguments"),
    "contextual raises": (
        "toy.op('toy.f', rule='i -> i', contextual=lambda op: 1 // 0)",
        "contextual raised Zero",
    ),
    "contextual gives a list": ("toy.op('toy.f', rule='i -> i', contextual=lambda op: [])", "cannot be hashed"),
    "the attribute is a number": ("toy.op('toy.f', sharding_attribute=3)", "not a name"),
    "a dialect without a name": ("sdy.Dialect('')", "a dialect has a name"),
    "a dialect of a number": ("sdy.Dialect(3)", "a dialect has a name, not 3"),
    "not a definition": ("toy.add('toy.f')", "'toy.f' is not an op definition"),
    "replacing what is not there": ("toy.replace(sdy.OpDefinition('toy.g'))", "does not define the op"),
    "a constant with operands": ("toy.op('toy.f', traits=[sdy.ConstantLike])", "ConstantLike, but 1 operands"),
}

TRAITS_OF = {
    "traits_of raises": ("toy.op('toy.f', traits_of=lambda op: 1 // 0)", "traits_of raised ZeroDivisionError"),
    "traits_of gives None": ("toy.op('toy.f', traits_of=lambda op: None)", "return [] for none"),
    "traits_of gives a text": ("toy.op('toy.f', traits_of=lambda op: 'Pure')", "not a list of traits"),
    "traits_of gives texts": ("toy.op('toy.f', traits_of=lambda op: ['Pure'])", "traits=[sdy.Pure]"),
    "traits_of gives one": ("toy.op('toy.f', traits_of=lambda op: sdy.Pure)", "[Pure]"),
    "traits_of gives true": ("toy.op('toy.f', traits_of=lambda op: True)", "not a list of traits"),
    "traits_of is a list": ("toy.op('toy.f', traits_of=[sdy.Pure])", "not a function of the op"),
    "traits_of takes nothing": ("toy.op('toy.f', traits_of=lambda: [])", "does not take its arguments"),
    "traits_of is a coroutine": (
        "async def g(op): return []\ntoy.op('toy.f', traits_of=g)",
        "is a coroutine",
    ),
    "traits_of recurses": (
        "def g(op): return g(op)\ntoy.op('toy.f', traits_of=g)",
        "raised RecursionError",
    ),
    "traits_of of a wildcard raises": ("toy.op('toy.*', traits_of=lambda op: op.nothing)", "raised AttributeError"),
}

FLOWS = {
    "the class": ("toy.op('toy.loop', data_flow=sdy.LoopDataFlow)", "the class LoopDataFlow, not an object"),
    "a function": ("def g(op): ...\ntoy.op('toy.loop', data_flow=g)", "is a function, not an object"),
    "a text": ("toy.op('toy.loop', data_flow='loop')", "does not describe data flow"),
    "nothing is written": (
        "class Flow(sdy.ShardableDataFlowOpInterface): ...\ntoy.op('toy.loop', data_flow=Flow())",
        "lacks the method get_edge_sources",
    ),
    "a method is missing": (
        "class Flow:\n    def get_edge_sources(self, op, owner): ...\ntoy.op('toy.loop', data_flow=Flow())",
        "lacks the method get_edge_owner_from_target",
    ),
    "a method is misspelt": (
        flow("get_op_result_edge_owner", "", "return []"),
        "did you mean get_op_result_edge_owners?",
    ),
    "a needed method is misspelt": (
        "class Flow:\n    def get_edge_source(self, op, owner): ...\ntoy.op('toy.loop', data_flow=Flow())",
        "did you mean get_edge_sources",
    ),
    "self is missing": (
        FLOW.format("def get_edge_sources(op, owner):\n        return []"),
        "is self missing?",
    ),
    "the owner is missing": (
        FLOW.format("def get_edge_sources(self, op):\n        return []"),
        "it is called with (op, owner)",
    ),
    "no method": (FLOW.format("get_edge_sources = 3"), "get_edge_sources = 3, which is not a method"),
    "an offset is negative": ("toy.op('toy.loop', data_flow=sdy.LoopDataFlow(-1))", "not a number of 0 or more"),
    "an offset skips all arguments": (
        "toy.op('toy.loop', data_flow=sdy.LoopDataFlow(first_argument=1))",
        "finds no argument 1 for result 0: a region has 1",
    ),
    "a misspelt offset": (
        "toy.op('toy.loop', data_flow=sdy.LoopDataFlow(first_yield=1))",
        "did you mean first_yielded",
    ),
    "an offset is a text": ("toy.op('toy.loop', data_flow=sdy.LoopDataFlow('1'))", "not a number of 0 or more"),
    "an offset is too high": ("toy.op('toy.loop', data_flow=sdy.LoopDataFlow(5))", "names operand 5 of toy.loop, of 1"),
    "sources raise": (flow("get_edge_sources", ", owner", "raise KeyError('x')"), "get_edge_sources raised KeyError"),
    "sources are None": (flow("get_edge_sources", ", owner", "pass"), "get_edge_sources returned None"),
    "sources are values": (
        flow("get_edge_sources", ", owner", "return op.operands"),
        "not an OpOperand",
    ),
    "sources are one": (
        flow("get_edge_sources", ", owner", "return OpOperand(op, 0)"),
        "[OpOperand(op, number)]",
    ),
    "sources are numbers": (flow("get_edge_sources", ", owner", "return [0]"), "gives 0, not an OpOperand"),
    "sources are elsewhere": (
        flow("get_edge_sources", ", owner", "return [OpOperand(op.parent.last, 0)]"),
        "which is not in the op",
    ),
    "sources are a coroutine": (
        FLOW.format("async def get_edge_sources(self, op, owner):\n        return []"),
        "is a coroutine",
    ),
    "owners are None": (flow("get_op_result_edge_owners", "", "return None"), "returned None, not a list of Values"),
    "owners are one": (flow("get_op_result_edge_owners", "", "return op.result"), "not a list of Values"),
    "owners are a text": (flow("get_op_result_edge_owners", "", "return 'all'"), "not a list of Values"),
    "owners are operands": (
        flow("get_op_result_edge_owners", "", "return op.operands"),
        "neither a result nor an argument",
    ),
    "argument owners are None": (
        flow("get_block_argument_edge_owners", "", "return None"),
        "get_block_argument_edge_owners returned None",
    ),
    "the owner of a target is a number": (
        flow("get_edge_owner_from_target", ", target", "return 0"),
        "returned 0, not a Value or None",
    ),
    "the owner of a target raises": (
        flow("get_edge_owner_from_target", ", target", "return op.results[9]"),
        "raised IndexError",
    ),
    "the owner of a target is forgotten": (
        flow("get_edge_owner_from_target", ", target", "op.results[0]"),
        "gives another owner",
    ),
    "the owner of a source raises": (
        flow("get_edge_owner_from_source", ", source", "return source.nothing"),
        "get_edge_owner_from_source raised AttributeError",
    ),
    "the owner of a source is a text": (
        flow("get_edge_owner_from_source", ", source", "return 'it'"),
        "returned 'it', not a Value or None",
    ),
    "targets are None": (
        flow("get_non_edge_owner_targets", ", owner", "return None"),
        "get_non_edge_owner_targets returned None",
    ),
    "targets are operands": (
        flow("get_non_edge_owner_targets", ", owner", "return op.operands"),
        "is neither a result nor a region argument",
    ),
    "shardings are None": (
        flow("get_op_result_edge_owner_shardings", "", "return None"),
        "get_op_result_edge_owner_shardings returned None",
    ),
    "shardings are texts": (
        flow("get_op_result_edge_owner_shardings", "", "return ['x']"),
        "gives 'x', not a TensorSharding",
    ),
    "setting shardings raises": (
        flow("set_op_result_edge_owner_shardings", ", shardings", "raise ValueError('no')"),
        "set_op_result_edge_owner_shardings raised ValueError",
    ),
    "the transform gives None": (
        flow("transform_target_sharding", ", target, sharding, transform", "pass"),
        "transform_target_sharding returned None",
    ),
    "the transform raises": (
        flow("transform_target_sharding", ", target, sharding, transform", "raise ValueError('no')"),
        "transform_target_sharding raised ValueError",
    ),
    "divisible is None": (
        flow("should_keep_edge_owner_shardings_divisible", "", "pass"),
        "returned None, not True or False",
    ),
}

COSTS = {
    "the class of a cost": (
        "class Cost(CostOpInterface): ...\ntoy.op('toy.f', cost=Cost)",
        "is the class Cost, not an object",
    ),
    "a number as sizes": ("toy.op('toy.f', sizes=3)", "sizes is 3, not a function"),
    "a number as a cost": ("toy.op('toy.f', cost=3)", "does not say what an op costs"),
    "a function that makes a cost of an op": (
        "toy.op('toy.f', cost=lambda op: BranchCost())",
        "the function that makes the cost does not take its arguments",
    ),
    "a cost that is not made": ("toy.op('toy.f', cost=lambda: None)", "cost returned None, not a cost"),
    "a cost that fails to be made": ("toy.op('toy.f', cost=lambda: 1 // 0)", "cost raised ZeroDivisionError"),
    "a number is made as a cost": ("toy.op('toy.f', cost=lambda: 3)", "does not say what an op costs"),
    "the bound of a counted loop is a text": (
        "from shardy_py.plugins import CountedLoopCost\ntoy.op('toy.f', cost=CountedLoopCost('steps'))",
        "constant of CountedLoopCost is 'steps', not a function of a value",
    ),
    "the attributes of a value": (
        cost("get_flops", "return op.operands[0].attributes['n']"),
        # No hint: no member of a value is like that.
        ":6 [cost]\n  hint: defined by",
    ),
    "a misspelt cost": (cost("get_flop", "return 3"), "did you mean get_flops?"),
    "a cost without self": (COST.format("def get_flops(op):\n        return 3"), "is self missing?"),
    "flops raise": (cost("get_flops", "return 1 // 0"), "get_flops raised ZeroDivisionError"),
    "flops are a text": (cost("get_flops", "return '3'"), "returned '3', not a number"),
    "flops are negative": (cost("get_flops", "return -1"), "returned -1, not a number"),
    "flops are infinite": (cost("get_flops", "return float('inf')"), "returned inf, not a number"),
    "flops are huge": (cost("get_flops", "return 10 ** 400"), "not a number that is finite"),
    "flops are none": (cost("get_flops", "return float('nan')"), "returned nan, not a number"),
    "the collective is a text": (cost("get_collective", "return 'all_reduce'"), "not an OwnCollective or None"),
    "the collective is unknown": (
        cost("get_collective", "return OwnCollective('allreduce', (0, 1))"),
        "gives the collective 'allreduce'",
    ),
    "the group is a number": (
        cost("get_collective", "return OwnCollective('all_reduce', 2)"),
        "gives the group 2",
    ),
    "runs are a number": (
        "class Cost(CostOpInterface):\n    def get_region_runs(self, op): return 3\n"
        "toy.op('toy.loop', data_flow=sdy.LoopDataFlow(), cost=Cost())",
        "returned 3, not a list of numbers",
    ),
    "runs are too many": (
        "class Cost(CostOpInterface):\n    def get_region_runs(self, op): return [1, 1]\n"
        "toy.op('toy.loop', data_flow=sdy.LoopDataFlow(), cost=Cost())",
        "returned 2 numbers for 1 regions",
    ),
    "runs are texts": (
        "class Cost(CostOpInterface):\n    def get_region_runs(self, op): return ['3']\n"
        "toy.op('toy.loop', data_flow=sdy.LoopDataFlow(), cost=Cost())",
        "gives '3', not a number",
    ),
}

MESHES = {
    "no method of a mesh reference": (
        "class Mesh: ...\ntoy.op('toy.f', mesh_reference=Mesh())",
        "lacks the method get_mesh",
    ),
    "a mesh reference that cannot be set": (
        "class Mesh:\n    def get_mesh(self, op): ...\ntoy.op('toy.f', mesh_reference=Mesh())",
        "lacks the method set_mesh",
    ),
    "the mesh raises": (
        "class Mesh:\n    def get_mesh(self, op): raise KeyError('mesh')\n    def set_mesh(self, op, mesh): ...\n"
        "toy.op('toy.f', traits=[sdy.Elementwise], mesh_reference=Mesh())",
        "get_mesh raised KeyError",
    ),
    "the mesh is a number": (
        "class Mesh:\n    def get_mesh(self, op): return 3\n    def set_mesh(self, op, mesh): ...\n"
        "toy.op('toy.f', traits=[sdy.Elementwise], mesh_reference=Mesh())",
        "returned 3, not the name of a mesh",
    ),
}

HOSTILE = {
    "the rule changes a type": (
        rule("op.results[0].type = sdy.tensor(4)\n    return None"),
        "the rule function changed its op",
    ),
    "the rule changes its op": (rule("op.results = None\n    return None"), "the rule function changed its op"),
    "the rule takes operands away": (rule("op.operands = ()\n    return None"), "the rule function changed its op"),
    "an error of ours with a text": (rule("raise sdy.RuleError('a text')"), "a text"),
    "an error of ours with nothing": (rule("raise sdy.ShardyError()"), "ShardyError"),
    "a plugin error with a text": ("raise sdy.PluginError('a text')", "a text"),
    "a rule that is a property": (
        "class R:\n    @property\n    def get_sharding_rule(self): raise ValueError('p')\ntoy.op('toy.f', rule=R())",
        "ValueError: p",
    ),
    "an object that has no attribute": (
        "class R:\n    def __getattr__(self, name): raise RuntimeError(name)\ntoy.op('toy.loop', data_flow=R())",
        "RuntimeError",
    ),
    "an object that has all attributes": (
        "class R:\n    def __getattr__(self, name): return lambda *a: None\ntoy.op('toy.loop', data_flow=R())",
        "lacks the method get_edge_sources",
    ),
    "traits that fail": ("toy.op('toy.f', traits=(1 / 0 for _ in [1]))", "ZeroDivisionError"),
    "traits without end": (
        "import itertools\ntoy.op('toy.f', traits=(sdy.Pure for _ in itertools.count()))",
        "more than 100000 items",
    ),
    "more traits without end": (
        "import itertools\ntoy.op('toy.f', traits_of=lambda op: (sdy.Pure for _ in itertools.count()))",
        "more than 100000 items",
    ),
    "sources without end": (
        flow("get_edge_sources", ", owner", "import itertools; return (OpOperand(op, 0) for _ in itertools.count())"),
        "more than 100000 items",
    ),
    "a trait of a number": ("toy.op('toy.f', traits=[sdy.Trait(3)])", "is not a trait"),
    "a trait of a list": ("toy.op('toy.f', traits=[sdy.Trait([])])", "is not a trait"),
    "a huge offset": ("toy.op('toy.loop', data_flow=sdy.LoopDataFlow(10**30))", "of toy.loop, of 1"),
    "a transform to another rank": (
        flow(
            "transform_target_sharding",
            ", target, sharding, transform",
            "return sdy.TensorSharding.fully_open('mesh', 5)",
        ),
        "which has other dimensions or another mesh",
    ),
    "too many shardings": (
        flow("get_op_result_edge_owner_shardings", "", "return [sdy.TensorSharding.fully_open('mesh', 2)] * 5"),
        "gives 5 shardings for 1 owners",
    ),
    "shardings of another rank": (
        flow("get_op_result_edge_owner_shardings", "", "return [sdy.TensorSharding.fully_open('mesh', 5)]"),
        "for result 0 of type",
    ),
    "a rule of nothing": (rule("return sdy.OpShardingRule(None, None, None)"), "made a rule that cannot be checked"),
    "a rule of texts": (rule("return sdy.OpShardingRule('ab', 'cd', 'ef')"), "made a rule that cannot be checked"),
    "a factor of 5000 digits": (build("b.add_factor([0], [0], 10**5000)"), "digits"),
    "a terminator in the middle": ("toy.op('toy.f', traits=[sdy.IsTerminator])", "but other ops follow it"),
    "all ops are constants": ("toy.op('*', traits=[sdy.ConstantLike])", "trait ConstantLike, but 1 operands"),
    "an owner twice": (
        flow("get_op_result_edge_owners", "", "return list(op.results) * 2"),
        "result 0 owns two edges",
    ),
    "a dialect renamed": ("toy.name = 3", "a dialect has a name, not 3"),
    "the decorator as a rule": ("toy.op('toy.f', rule=toy.op)", "under its full name"),
    "a rule of an attribute that is not there": (
        "@toy.op('toy.f', contextual=True)\ndef f(op):\n    return op.operands[0].owner.nothing",
        "raised AttributeError",
    ),
    "an error of 100000 letters": (rule("raise ValueError('x' * 100000)"), "raised ValueError: xxx"),
    "an error on several lines": (rule("raise ValueError('one\\ntwo')"), "raised ValueError: one, at"),
    "an error group": (rule("raise ExceptionGroup('g', [ValueError('x')])"), "raised ExceptionGroup: g"),
    "a failing assertion": (rule("assert op.name == 'x', 'bad op'"), "raised AssertionError: bad op"),
    "a text that is run": (rule("return eval('1 +')"), "raised SyntaxError"),
    "a rule out of memory": (rule("raise MemoryError"), "raised MemoryError"),
    "a pass that empties operands": (
        PASS.format("def run(self, program, context):\n        for op in program.walk(): op.operands = None"),
        "looking at it fails with TypeError",
    ),
    "a pass that leaves no shardings": (
        PASS.format("def run(self, program, context): program.shardings = None"),
        "left a program that is not well formed",
    ),
    "a pass that leaves texts as shardings": (
        PASS.format("def run(self, program, context): program.shardings[0] = 'x'"),
        "'x' is not a sharding",
    ),
    "a pass that renames an op": (
        PASS.format("def run(self, program, context):\n        for op in program.walk(): op.name = 'x y'"),
        "left a program that is not well formed",
    ),
    "a pass that leaves a text as a type": (
        PASS.format(
            "def run(self, program, context):\n"
            "        for op in program.walk():\n"
            "            for value in op.results: value.type = 'f32'"
        ),
        "a value of the op has no type",
    ),
    "a pass that takes the function out": (
        PASS.format("def run(self, program, context):\n        list(program.body.ops)[-1].erase()"),
        "it has no function any more",
    ),
}

PASSES = {
    "the pass raises": (
        PASS.format("def run(self, program, context): program.nothing"),
        "the pass 'toy-sweep' raised AttributeError",
    ),
    "the pass returns the program": (
        PASS.format("def run(self, program, context): return program"),
        "returns nothing",
    ),
    "the pass takes too little": (PASS.format("def run(self, program): ..."), "raised TypeError"),
    "the pass is a coroutine": (PASS.format("async def run(self, program, context): ..."), "returned a coroutine"),
    "the pass breaks the program": (
        PASS.format(
            "def run(self, program, context):\n"
            "        op = next(op for op in program.walk() if op.name == 'toy.f')\n"
            "        op.parent.remove(op)"
        ),
        "left a program that is not well formed",
    ),
    "the pass needs arguments": (
        PASS.format("def __init__(self, x): ...\n    def run(self, program, context): ..."),
        "missing 1 required positional argument",
    ),
    "the pass is an object": (
        PASS.format("def run(self, program, context): ...").replace("[Sweep]", "[Sweep()]"),
        "give the class, not an object",
    ),
    "the pass has no name": (
        PASS.format("def run(self, program, context): ...").replace("name =", "nmae ="),
        "Sweep has no name",
    ),
    "the pass has no run": (PASS.format("def runs(self): ..."), "Sweep has no method run"),
    "the pass runs before nothing": (
        PASS.format("def run(self, program, context): ...").replace("scalar-splitter", "scalar-spliter"),
        "did you mean sdy-constant-or-scalar-splitter",
    ),
    "the pass misspells its place": (
        PASS.format("def run(self, program, context): ...").replace("runs_before", "run_before"),
        "did you mean runs_before?",
    ),
    "the pass has a name that is taken": (
        PASS.format("def run(self, program, context): ...").replace("toy-sweep", "sdy-close-shardings"),
        "has the name of a bundled one",
    ),
    "one pass, no list": (
        PASS.format("def run(self, program, context): ...").replace("[Sweep]", "Sweep"),
        "not a list of pass classes",
    ),
}

SCHEDULES = {
    "a selector": (SCHEDULE.format("[Selector(names=('toy.f',))]"), "a priority has a level, too"),
    "an entry": (SCHEDULE.format("[Entry(Selector(names=('toy.f',)))]"), "a priority has a level, too"),
    "a selector in a priority": (
        SCHEDULE.format("[OpPriority(0, Selector(names=('toy.f',)))]"),
        "a priority has an entry, not",
    ),
    "a level that is not there": (
        SCHEDULE.format("[OpPriority(99, Entry(Selector(names=('toy.f',))))]"),
        "there is no level 99",
    ),
    "a level below": (SCHEDULE.format("[OpPriority(-1, Entry(Selector(names=('toy.f',))))]"), ">= 0"),
    "a level by name": (
        SCHEDULE.format("[OpPriority('first', Entry(Selector(names=('toy.f',))))]"),
        "the level of a priority is 'first', not a number",
    ),
    "a name, no tuple": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names='toy.f')))]"),
        "names=('toy.f',)",
    ),
    "a misspelt name": (
        "toy.op('toy.add')\n" + SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('toy.ad',))))]"),
        "did you mean toy.add",
    ),
    "the op of another": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('stablehlo.add',))))]"),
        "which is not an op of the plugin",
    ),
    "no names": (SCHEDULE.format("[OpPriority(0, Entry(Selector()))]"), "by names only"),
    "a trait as a text in a selector": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(traits=('Pure',))))]"),
        "traits=(sdy.Pure,)",
    ),
    "a wrong direction": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('toy.f',)), 'forward'))]"),
        "an entry has a direction, not 'forward'",
    ),
    "wrong uses": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('toy.f',), uses='one')))]"),
        "the uses of a selector are 'one'",
    ),
    "a predicate that is none": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('toy.f',), predicate=3)))]"),
        "not a function of the op",
    ),
    "a predicate that raises": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('toy.f',), predicate=lambda op: 1 // 0)))]"),
        "the predicate of a priority raised ZeroDivisionError",
    ),
    "a predicate that gives None": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('toy.f',), predicate=lambda op: None)))]"),
        "returned None, not True or False",
    ),
    "a predicate without arguments": (
        SCHEDULE.format("[OpPriority(0, Entry(Selector(names=('toy.f',), predicate=lambda: True)))]"),
        "raised TypeError",
    ),
    "priorities are None": (SCHEDULE.format("None"), "is a return missing?"),
}

HOOK = "@sdy.hookimpl\ndef shardy_register_passes():\n    "
HOOKS = {
    "a hook returns None": (HOOK + "pass", "is a return missing?"),
    "a hook raises": (HOOK + "raise ValueError('x')", "ValueError: x"),
    "a hook exits": (HOOK + "import sys; sys.exit(2)", "SystemExit: 2"),
    "a hook recurses": (HOOK + "return shardy_register_passes()", "RecursionError"),
    "a hook is a generator": (HOOK + "yield 3", "returned a generator"),
    "a hook is a coroutine": (HOOK.replace("def ", "async def ") + "return []", "returned a coroutine"),
    "a hook returns a number": (HOOK + "return 3", "returned 3, not a list of pass classes"),
    "a hook returns a dictionary": (HOOK + "return {}", "returned {}, not a list"),
    "a hook is misspelt": (HOOK.replace("passes", "pases") + "return []", "did you mean shardy_register_passes"),
    "a hook has arguments": (HOOK.replace("()", "(registry)") + "return []", "registry"),
    "a hook is not marked": (HOOK.replace("@sdy.hookimpl\n", "") + "return []", "is not marked as a hook"),
    "a hook is no function": ("shardy_register_passes = []", "not a function"),
    "a dialect twice under one name": (
        "other = sdy.Dialect('toy')\nother.op('toy.f')\ntoy.op('toy.f')\n"
        "@sdy.hookimpl(specname='shardy_register_dialects')\ndef more():\n    return [other]",
        "defines the op 'toy.f' in two dialects",
    ),
    "frontends are classes": (
        "class Front:\n    name = 'front'\n    def accepts(self, module): ...\n"
        "@sdy.hookimpl\ndef shardy_register_frontends():\n    return [Front]",
        "give an object of the class",
    ),
    "frontends are None": ("@sdy.hookimpl\ndef shardy_register_frontends():\n    pass", "is a return missing?"),
    "a frontend has no methods": (
        "class Front:\n    name = 'front'\n    accepts = None\n"
        "@sdy.hookimpl\ndef shardy_register_frontends():\n    return [Front()]",
        "has no",
    ),
}

MISTAKES = {**RULES, **DEFINITIONS, **TRAITS_OF, **FLOWS, **MESHES, **HOSTILE, **PASSES, **SCHEDULES, **HOOKS}
"""All but those that only an estimate of the cost meets."""

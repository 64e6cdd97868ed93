"""Local programs on virtual devices: do the ops of a dialect give on shards what they give on whole tensors?"""

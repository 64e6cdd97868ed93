"""What tests of the package and of plugins share: conformance runs, generators, comparisons."""

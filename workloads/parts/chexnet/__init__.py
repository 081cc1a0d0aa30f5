"""Study 003's CheXNet, as far as every framework has it alike: terms, network, weights, data, measurement."""

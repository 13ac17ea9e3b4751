"""What the server does with reports: intake, attestation, suspicion, pruning, refinement, denoising, training."""

"""What trained drafters share: prompts, answers of the target, features on disk and the training loop."""

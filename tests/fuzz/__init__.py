"""Fuzzing: whatever comes in, a clear refusal or finite numbers come out, within seconds. Run longer by `make fuzz`."""

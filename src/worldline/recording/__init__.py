"""Recordings: a run as an MCAP file, the same bytes for the same run."""

from worldline.recording.facts import Count, Header, LossCount, MemberFacts, Provenance, RunFacts, float_fingerprint
from worldline.recording.reader import Arrival, Condition, Loss, Recording, RecordingVerdict, Unheard
from worldline.recording.run_recording import RunRecording, Shelf
from worldline.recording.writer import Recorder, Schema

__all__ = [
    "Arrival",
    "Condition",
    "Count",
    "Header",
    "Loss",
    "LossCount",
    "MemberFacts",
    "Provenance",
    "Recorder",
    "Recording",
    "RecordingVerdict",
    "RunFacts",
    "RunRecording",
    "Schema",
    "Shelf",
    "Unheard",
    "float_fingerprint",
]

"""Recordings that are read from files: the dtypes of their samples."""

from __future__ import annotations

from tests.infer.programs import known


def test_samples_have_the_dtype_that_the_library_reads_them_in() -> None:
    program = """
import librosa
import numpy as np
import soundfile as sf
import torchaudio

def of(path):
    a = torch.from_numpy(sf.read(path)[0]) * 1
    b = torch.from_numpy(sf.read(path, dtype="float32")[0]) * 2
    c = torch.from_numpy(sf.read(path, dtype=path)[0]) * 3
    d = torch.from_numpy(librosa.load(path, sr=16000)[0]) * 4
    e = torchaudio.load(path)[0] * 5
    f = torchaudio.load(path, normalize=False)[0] * 6
    g = torch.from_numpy(np.real(np.fft.fft(sf.read(path)[0]))) * 7

of("a.wav")
"""
    dtypes = {text[-1]: dtype for text, dtype in known(program).items() if " * " in text}
    assert dtypes == {"1": "float64", "2": "float32", "4": "float32", "5": "float32", "7": "float64"}

"""Models from files of GGUF, their tokenizer, and the command ``sley chat``."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_llama import SHAPES, random_checkpoint
from typer.testing import CliRunner

from sley.abi.install import extra
from sley.driver import BadRequest
from sley.runtime.cli import app
from sley.runtime.llama.checkpoint import Checkpoint, read_gguf
from sley.runtime.llama.tokenizer import Tokenizer, chat_text

gguf = pytest.importorskip("gguf", reason=f"gguf is not installed: {extra('chat')}")
pytest.importorskip("tokenizers", reason=f"tokenizers is not installed: {extra('chat')}")

CONTROL, NORMAL = 3, 1


def bytes_of_gpt2() -> list[str]:
    """The characters that stand for bytes in a byte-level vocabulary, in the order of the bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(b) if b in shown else chr(256 + sum(c not in shown for c in range(b))) for b in range(256)]


def write(path: Path, checkpoint: Checkpoint, architecture: str = "llama") -> None:
    """A file of a small model whose tokens are bytes, some words, and marks of a conversation."""
    shape, writer = checkpoint.shape, gguf.GGUFWriter(path, architecture)
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *bytes_of_gpt2(), "he", "hel"]
    writer.add_block_count(shape.layers)
    writer.add_context_length(shape.context)
    writer.add_embedding_length(shape.width)
    writer.add_feed_forward_length(shape.hidden)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.key_heads)
    writer.add_rope_dimension_count(shape.head)
    writer.add_rope_freq_base(shape.rotary_base)
    writer.add_layer_norm_rms_eps(shape.epsilon)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list([*tokens, *(f"unused{i}" for i in range(shape.vocabulary - len(tokens)))])
    writer.add_token_types([CONTROL] * 3 + [NORMAL] * (shape.vocabulary - 3))
    writer.add_token_merges(["h e", "he l"])
    writer.add_eos_token_id(2)
    writer.add_tensor("token_embd.weight", checkpoint.embedding)
    writer.add_tensor("output_norm.weight", checkpoint.norm)
    for number, layer in enumerate(checkpoint.layers):
        for name, own in (
            ("attn_norm", layer.attention_norm),
            ("attn_q", pairs(layer.query, shape.head)),
            ("attn_k", pairs(layer.key, shape.head)),
            ("attn_v", layer.value),
            ("attn_output", layer.output),
            ("ffn_norm", layer.feed_norm),
            ("ffn_gate", layer.gate),
            ("ffn_up", layer.up),
            ("ffn_down", layer.down),
        ):
            writer.add_tensor(f"blk.{number}.{name}.weight", own)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def pairs(weights: np.ndarray, head: int) -> np.ndarray:
    """Rows as GGUF has them: those that the rotary embedding turns together side by side."""
    rows = weights.reshape(-1, 2, head // 2, weights.shape[1])
    return np.ascontiguousarray(rows.transpose(0, 2, 1, 3)).reshape(weights.shape)


@pytest.fixture
def small() -> Checkpoint:
    return random_checkpoint(replace(SHAPES["grouped"], vocabulary=272), 9)


def test_read(tmp_path: Path, small: Checkpoint) -> None:
    """All weights and sizes come back."""
    write(tmp_path / "small.gguf", small)
    found = read_gguf(tmp_path / "small.gguf")
    assert found.shape.rotary_base == small.shape.rotary_base
    assert found.shape.epsilon == pytest.approx(small.shape.epsilon)
    for name in ("layers", "width", "hidden", "vocabulary", "heads", "key_heads", "head", "context"):
        assert getattr(found.shape, name) == getattr(small.shape, name)
    for mine, theirs in zip(found.layers, small.layers, strict=True):
        for name in vars(theirs):
            assert (getattr(mine, name) == getattr(theirs, name)).all(), name
    assert (found.head == small.embedding).all()


def test_tokenizer(tmp_path: Path, small: Checkpoint) -> None:
    """Merges, single digits, bytes of characters outside of ASCII, and marks as a whole."""
    write(tmp_path / "small.gguf", small)
    tokenizer = Tokenizer.of(read_gguf(tmp_path / "small.gguf").vocabulary)
    names = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *bytes_of_gpt2(), "he", "hel"]
    assert [names[token] for token in tokenizer.encode("hello 42")] == ["hel", "l", "o", "Ġ", "4", "2"]
    text = chat_text([("user", "Grüße… 7")], system="short")
    tokens = tokenizer.encode(text)
    assert [token for token in tokens if token < 3] == [1, 2, 1, 2, 1]
    assert tokenizer.decode(tokens) == text.replace("<|im_start|>", "").replace("<|im_end|>", "")
    assert tokenizer.decode(tokenizer.encode("ü")[:1]) == "\ufffd"


def test_bad_files(tmp_path: Path, small: Checkpoint) -> None:
    with pytest.raises(BadRequest, match="no such file"):
        read_gguf(tmp_path / "none.gguf")
    (tmp_path / "text.gguf").write_text("no model at all, but long enough")
    with pytest.raises(BadRequest, match=r"text\.gguf is no file of GGUF"):
        read_gguf(tmp_path / "text.gguf")
    write(tmp_path / "other.gguf", small, "gpt2")
    with pytest.raises(BadRequest, match="the architecture 'gpt2'; llama is what runs"):
        read_gguf(tmp_path / "other.gguf")
    with pytest.raises(BadRequest, match="a tokenizer of the kind"):
        Tokenizer.of({"tokenizer.ggml.model": "llama"})


def test_chat(tmp_path: Path, small: Checkpoint) -> None:
    """One answer, with its cycles; and a conversation of two."""
    path = tmp_path / "small.gguf"
    write(path, small)
    options = ["--model", str(path), "--tokens", "4", "--context", "256", "--engine"]
    once = CliRunner().invoke(app, ["chat", "hel", *options, "model:base?memory=32M&cycles=on"])
    assert once.exit_code == 0, once.output
    assert "4; " in once.output
    assert "cycles a token" in once.output
    talk = CliRunner().invoke(app, ["chat", *options, "model:base?memory=32M"], input="a\nb\n")
    assert talk.exit_code == 0, talk.output
    assert talk.output.count("tokens, then") == 2

"""DT511: the keyword by which transformers is told a dtype."""

from __future__ import annotations

from bench import Bench

BENCH = Bench("DT511", "DT511", "import torch\n")


def test_the_keyword_is_renamed_and_all_else_stays() -> None:
    before = """\
        import transformers as hf
        model = hf.AutoModel.from_pretrained(
            name,
            torch_dtype = torch.float16,  # half as long
            **more,
        )
        """
    assert BENCH.fixed("DT511", before).splitlines()[3] == "    dtype = torch.float16,  # half as long"


def test_the_class_is_known_by_every_spelling() -> None:
    text = """\
        import transformers
        from transformers import AutoModel as Model
        from transformers import pipeline as make
        transformers.AutoModelForCausalLM.from_pretrained(name, torch_dtype="auto")  # <-
        Model.from_config(config, torch_dtype=dtype)  # <-
        make("text-generation", torch_dtype=dtype)  # <-
        """
    assert BENCH.flagged("DT511", text) == [5, 6, 7]


def test_other_libraries_keep_their_keyword() -> None:
    text = """\
        import transformers
        from diffusers import UNet2DConditionModel, pipeline
        from mine import Model
        UNet2DConditionModel.from_pretrained(name, torch_dtype=dtype)
        Model.from_pretrained(name, torch_dtype=dtype)
        pipeline(name, torch_dtype=dtype)
        """
    assert BENCH.flagged("DT511", text) == []


def test_who_gives_both_meets_old_and_new_releases() -> None:
    text = """\
        from transformers import AutoModel
        AutoModel.from_pretrained(name, torch_dtype=dtype, dtype=dtype)
        """
    assert BENCH.flagged("DT511", text) == []

"""What get_peft_model gives computes as the model did; read without peft."""

from __future__ import annotations

from tests.infer.programs import known


def test_a_model_with_adapters_gives_what_it_gave() -> None:
    program = """
        import peft
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
            def forward(self, x):
                return self.fc(x)
        net = peft.get_peft_model(Net().bfloat16(), peft.LoraConfig(r=2))
        net.print_trainable_parameters()
        x = torch.ones(2, dtype=torch.bfloat16)
        y = net(x)
        z = net.merge_and_unload()(x)
    """
    found = known(program)
    assert found["net(x)"] == "bfloat16"
    assert found["net.merge_and_unload()(x)"] == "bfloat16"


def test_what_is_around_a_model_is_no_object_of_its_class() -> None:
    program = """
        import copy, peft
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc = nn.Linear(2, 2)
        net = peft.get_peft_model(Net(), peft.LoraConfig(r=2))
        a = torch.ones(2).half() if isinstance(net, peft.PeftModel) else torch.ones(2)
        b = torch.ones(2).half() if isinstance(net, Net) else torch.ones(2)
        c = copy.deepcopy(net).double().merge_and_unload().fc.weight * 2
        print(a, b, c)
    """
    found = known(program)
    assert found["a"] == found["b"] == "float16|float32"
    assert found["c"] == "float64"

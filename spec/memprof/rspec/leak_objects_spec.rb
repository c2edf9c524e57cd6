# frozen_string_literal: true

require "memprof/rspec"

RSpec.describe Memprof::RSpec::LeakObjects do
  def fail_with(message)
    raise_error(RSpec::Expectations::ExpectationNotMetError, message)
  end

  it "finds what grows" do
    kept = []
    expect { kept << Object.new }.to leak_objects
    expect { kept << Object.new }.to leak_objects.over(10).runs.warmup(1)
  end

  it "finds nothing where nothing grows" do
    last = nil
    filled = []
    expect { Object.new }.not_to leak_objects.over(10).runs
    expect { last = Object.new }.not_to leak_objects.over(10).runs
    expect { filled << Object.new if filled.size < 3 }.not_to leak_objects.over(10).runs.warmup(3)
    expect(last).not_to be_nil
  end

  it "says what grew, how fast, and where it was made" do
    kept = []
    line = __LINE__ + 1
    block = -> { 2.times { kept << Object.new } }
    expect { expect(&block).not_to leak_objects.over(8).runs }.to fail_with(<<~MESSAGE.chomp)
      expected block not to leak objects over 8 runs, but 1 site grew
        Objects/run  Class   Allocated at
              +2.00  Object  spec/memprof/rspec/leak_objects_spec.rb:#{line}
    MESSAGE
    expect { expect { nil }.to leak_objects.over(8).runs }.to fail_with(
      "expected block to leak objects over 8 runs, but no site grew"
    )
  end

  it "looks at some classes only, if asked to" do
    kept = []
    expect { kept << Object.new }.not_to leak_objects.over(8).of(String)
    expect { kept << +"text" }.to leak_objects.over(8).of(String, Array)
  end

  it "runs as often as asked" do
    runs = 0
    expect { runs += 1 }.not_to leak_objects.over(7).runs.warmup(2)
    expect(runs).to eq(9)
  end

  it "wants a block and sense" do
    expect(leak_objects.matches?(5)).to be(false)
    expect(leak_objects.does_not_match?(5)).to be(false)
    expect { leak_objects.warmup(:x) }.to raise_error(ArgumentError, /warm-up/)
    expect { leak_objects.of(1) }.to raise_error(ArgumentError, /not a class/)
    expect(leak_objects.over(5).of(String).description).to eq("leak objects of String over 5 runs")
  end
end

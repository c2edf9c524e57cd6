# frozen_string_literal: true

require "memprof/rspec"
require "objspace"

RSpec.describe Memprof::RSpec::PerformAllocation do
  def fail_with(message)
    raise_error(RSpec::Expectations::ExpectationNotMetError, message)
  end

  # Bytes of a small object on this Ruby.
  let(:slot) { ObjectSpace.memsize_of(Object.new) }
  let(:block) { -> { [Object.new, Object.new] } }

  it "is an upper bound of objects" do
    expect(&block).to perform_allocation(3)
    expect(&block).to perform_allocation(4).objects
    expect(&block).not_to perform_allocation(2)
    expect { expect(&block).to perform_allocation(1) }.to fail_with(
      /expected block to allocate at most 1 object, but it allocated 3 objects\n/
    )
  end

  it "takes classes, each for itself" do
    expect(&block).to perform_allocation({ Array => 1, Object => 2 }).objects
    expect(&block).not_to perform_allocation({ Array => 1, Object => 1 })
    expect(&block).to perform_allocation({ Array => slot, Object => 2 * slot }).bytes
  end

  it "counts bytes" do
    expect(&block).to perform_allocation(3 * slot).bytes
    expect(&block).to perform_allocation(3 * slot).memory
    expect(&block).not_to perform_allocation(3 * slot - 1).bytes
  end

  it "limits what is retained as well" do
    kept = []
    keep = -> { 2.times { kept << Object.new } }
    expect(&keep).to perform_allocation(2).and_retain(2)
    expect { expect(&keep).to perform_allocation(2).and_retain(1) }.to fail_with(
      /and retain at most 1 object, but it allocated 2 objects and retained 2 objects\n.*Allocated at/
    )
  end

  it "warms up" do
    runs = 0
    expect { runs += 1 }.to perform_allocation(0).warmup(2)
    expect { runs += 1 }.to perform_allocation(0, warmup: 2)
    expect(runs).to eq(6)
  end

  it "refuses what is no limit" do
    expect { perform_allocation(:error) }.to raise_error(ArgumentError, /:error is not a limit/)
  end
end

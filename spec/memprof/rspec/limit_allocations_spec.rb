# frozen_string_literal: true

require "memprof/rspec"

RSpec.describe Memprof::RSpec::LimitAllocations do
  def fail_with(message)
    raise_error(RSpec::Expectations::ExpectationNotMetError, message)
  end

  let(:block) { -> { 6.times { String.new } } }

  it "takes a limit for each class" do
    expect(&block).to limit_allocations(String => 10)
    expect(&block).to limit_allocations(String => 6..6)
    expect(&block).to limit_allocations({ String => { count: 10, size: 1024 } })
    expect(&block).not_to limit_allocations(String => 5)
    expect { expect(&block).to limit_allocations(String => { count: 10, size: 100 }) }.to fail_with(
      /at most 100 bytes of String, but it allocated 6 objects of String and \d+ bytes of String\n.*\n.* 6 /
    )
  end

  it "takes limits for all classes" do
    expect(&block).to limit_allocations(count: 6)
    expect(&block).to limit_allocations(size: 1024)
    expect { expect(&block).to limit_allocations(count: 5) }.to fail_with(/5 objects, but it allocated 6/)
  end

  it "takes limits one by one" do
    expect(&block).to limit_allocations.of(String, count: 6)
    expect(&block).to limit_allocations.of(String, count: 6, size: 1024).of(Array, count: 0)
    expect(&block).to limit_allocations(count: 7).of(Array, count: 0)
    expect { expect(&block).to limit_allocations.of(String, count: 5) }.to fail_with(/5 objects of String/)
    expect { limit_allocations.of(String) }.to raise_error(ArgumentError, /not a limit/)
  end

  it "refuses classes that have no limit, unless all together have one" do
    mixed = -> { [+"a", +"b"] }
    expect { expect(&mixed).to limit_allocations(String => 2) }.to fail_with(
      /allocated 2 objects of String and allocated 1 of classes that have no limit\n.*\n.*Array/
    )
    expect(&mixed).to limit_allocations(String => 2, count: 3)
  end
end

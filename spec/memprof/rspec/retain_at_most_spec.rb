# frozen_string_literal: true

require "memprof/rspec"
require "objspace"

RSpec.describe Memprof::RSpec::RetainAtMost do
  def fail_with(message)
    raise_error(RSpec::Expectations::ExpectationNotMetError, message)
  end

  it "counts what is retained, not what was allocated, nor the block's value" do
    kept = []
    expect { 100.times { Object.new } }.to retain_at_most(0)
    expect { Array.new(100) { Object.new } }.to retain_at_most(0)
    expect { 3.times { kept << Object.new } }.to retain_at_most(3..3)
  end

  it "shows what is retained, and where it was allocated" do
    kept = []
    line = __LINE__ + 1
    block = -> { 3.times { kept << Object.new; Object.new } }
    expect { expect(&block).to retain_at_most(1) }.to fail_with(<<~MESSAGE.chomp)
      expected block to retain at most 1 object, but it retained 3 objects
        Objects  Bytes  Class   Allocated at
              3  #{3 * ObjectSpace.memsize_of(Object.new)} B  Object  spec/memprof/rspec/retain_at_most_spec.rb:#{line}
    MESSAGE
  end

  it "counts bytes and classes" do
    kept = []
    block = -> { kept << ("x" * 10_000) << [] }
    expect(&block).to retain_at_most(10_000..10_200).bytes
    expect(&block).to retain_at_most(1..1).of(String)
    expect(&block).to retain_at_most(1..1).objects.of(Array)
    expect(&block).to retain_at_most({ String => 1..1, Array => 1..1 })
  end

  it "says in the negative what does not stay" do
    kept = []
    expect { 2.times { kept << Object.new } }.not_to retain_at_most(1)
    expect { expect { Object.new }.not_to retain_at_most(1) }.to fail_with(
      "expected block not to retain at most 1 object, but it retained 0 objects"
    )
  end

  it "is not misled by what lies about on the stack" do
    deep = ->(depth) { depth.zero? ? Object.new : [depth].map { |left| deep.call(left - 1) } }
    20.times { expect { deep.call(30) }.to retain_at_most(0) }
  end

  it "is not misled by the last match, and leaves the one there was" do
    "before" =~ /bef/
    expect { "abc" =~ /b/ }.to retain_at_most(0)
    expect { "abc".gsub(/b/) { |found| found * 2 } }.to retain_at_most(0)
    expect($~[0]).to eq("bef")
  end

  it "is not misled by what an enumerator's Fiber yielded" do
    expect { [1, 2].each.next }.to retain_at_most(0)
  end

  it "takes a method and a Symbol as a block" do
    kept = []
    expect(&kept.method(:clear)).to retain_at_most(0)
    expect(&:itself).to raise_error(ArgumentError) # a Symbol wants a receiver, which no matcher gives
  end
end

# frozen_string_literal: true

# Memory as a part of the specification: a cache that must not grow, and a look-up that must not allocate.
#
#   ruby examples/cache_spec.rb      # or rspec examples/cache_spec.rb
require "rspec/autorun" if $PROGRAM_NAME == __FILE__
require "memprof/rspec"

# The last answers, and no more than that.
class Answers
  LIMIT = 10

  def initialize
    @answers = {}
  end

  def fetch(question)
    @answers[question] ||= yield.tap { @answers.shift if @answers.size >= LIMIT }
  end
end

RSpec.describe Answers do
  let(:answers) { described_class.new }

  it "keeps one string for one question" do
    expect { answers.fetch(:one) { +"answer" } }.to retain_at_most(1).of(String).warmup(0)
  end

  it "allocates nothing for a question that it knows" do
    expect { answers.fetch(:one) { +"answer" } }.to allocate_at_most(0)
  end

  it "does not grow" do
    number = 0
    expect { answers.fetch(number += 1) { +"answer" } }.not_to leak_objects.warmup(10)
  end
end

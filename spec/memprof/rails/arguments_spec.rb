# frozen_string_literal: true

require "memprof/rails/arguments"

RSpec.describe Memprof::Rails::Arguments do
  def numbers(arguments) = described_class.numbers(arguments, count: 20, limit: 30)

  it "takes numbers, in any order, and else the defaults" do
    given = [{}, { count: "5" }, { limit: "7", count: "5" }, { count: "", limit: nil }, { count: 3 }]
    expect(given.map { |arguments| numbers(arguments) })
      .to eq([[20, 30], [5, 30], [5, 7], [20, 30], [3, 30]])
  end

  it "ends the task if an argument is not a number above 0" do
    %w[0 -3 2.5 many 0x].each do |text|
      message = "memprof: limit must be a whole number above 0 (got #{text})\n"
      expect { expect { numbers(limit: text) }.to raise_error(SystemExit) { |e| expect(e.status).to eq(1) } }
        .to output(message).to_stderr
    end
  end
end

# frozen_string_literal: true

RSpec.describe Memprof::Growth::Series do
  subject(:series) { described_class.new }

  it "has one count for each run, also where there was nothing" do
    series.add([[5, "a.rb", 1, "String"]]).add([[2, "b.rb", 2, "Hash"]])
    series.add([[7, "a.rb", 1, "String"]]).add([])
    expect(series.to_h).to eq ["a.rb", 1, "String"] => [5, 0, 7, 0], ["b.rb", 2, "Hash"] => [0, 2, 0, 0]
  end

  it "adds up what is allocated at one site" do
    series.add([[5, "a.rb", 1, "String"], [2, "a.rb", 1, "String"]])
    expect(series.to_h).to eq ["a.rb", 1, "String"] => [7]
  end

  it "passes over what memprof itself allocates, and only that" do
    series.add(["memprof.rb", "memprof/session.rb", "memprofessional.rb"].map do |file|
      [1, File.join(ChildRuby::LIB, file), 1, "Array"]
    end)
    expect(series.to_h.keys.map(&:first)).to eq [File.join(ChildRuby::LIB, "memprofessional.rb")]
  end

  it "is empty at first" do
    expect(series.to_h).to eq({})
  end
end

# frozen_string_literal: true

require "memprof/cli"
require "memprof/cli/size"

RSpec.describe Memprof::CLI::Size do
  it "reads sizes as people write them" do
    {
      "0" => 0, "1048576" => 1_048_576, "512B" => 512, "500MB" => 500_000_000, "2GiB" => 2 * 1024**3,
      "1.5 GiB" => 1_610_612_736, "20g" => 20_000_000_000, "3Ki" => 3072, " 7k " => 7000
    }.each { |text, bytes| expect(described_class.parse(text)).to eq(bytes), text }
  end

  it "reads nothing else" do
    ["", "much", "-1", "1 2", "1EB", "1e9", "GiB", ".5M", "1\n2"].each do |text|
      expect(described_class.parse(text)).to be_nil, text
    end
  end
end

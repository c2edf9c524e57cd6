# frozen_string_literal: true

require "memprof/byte_size"

RSpec.describe Memprof::ByteSize do
  it "reads sizes as people write them" do
    {
      "0" => 0, "1048576" => 1_048_576, "1_000" => 1000, "512B" => 512, "500MB" => 500_000_000,
      "2GiB" => 2 * 1024**3, "1.5 GiB" => 1_610_612_736, "20g" => 20_000_000_000, "3Ki" => 3072,
      " 7k " => 7000, "1TB" => 10**12, 4096 => 4096
    }.each { |size, bytes| expect(described_class.read(size)).to eq(bytes), size.inspect }
  end

  it "reads nothing else" do
    ["", "much", "-1", "1 2", "1EB", "1e9", "GiB", ".5M", "1\n2", "5i", -1, 1.5, nil].each do |size|
      expect { described_class.read(size) }
        .to raise_error(ArgumentError, "#{size.inspect} is not a size: give bytes, or as \"64 KiB\"")
    end
  end
end

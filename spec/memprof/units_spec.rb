# frozen_string_literal: true

require "memprof/units"

RSpec.describe Memprof::Units do
  it "writes sizes in binary units" do
    sizes = [0, 480, 1023, 1024, 12_900_000, 1024**2 - 1, 1024**3, 5 * 1024**4, 1024**7]
    expect(sizes.map { |size| described_class.bytes(size) })
      .to eq ["0 B", "480 B", "1023 B", "1.0 KiB", "12.3 MiB", "1.0 MiB", "1.0 GiB", "5.0 TiB", "1024.0 EiB"]
  end

  it "writes sizes that shrink" do
    expect([-5, -2048].map { |size| described_class.bytes(size) }).to eq ["-5 B", "-2.0 KiB"]
  end

  it "scales bytes as memory_profiler does" do
    sizes = [0, 1, 999, 1000, 16_660, 5_060_000, 10**9, 10**27]
    expect(sizes.map { |size| described_class.decimal_bytes(size) })
      .to eq ["0 B", "1.00 B", "999.00 B", "1.00 kB", "16.66 kB", "5.06 MB", "1.00 GB", "1000.00 YB"]
  end

  it "separates thousands" do
    expect([0, 999, 1000, 1_204_113, -1234].map { |number| described_class.count(number) })
      .to eq ["0", "999", "1,000", "1,204,113", "-1,234"]
  end

  it "knows one object from many" do
    expect([0, 1, 1204, -1, -2].map { |number| described_class.objects(number) })
      .to eq ["0 objects", "1 object", "1,204 objects", "-1 object", "-2 objects"]
  end

  it "never rounds a part to nothing or to all" do
    parts = [0, 1, 10, 15, 500, 996, 999, 1000, 1500]
    expect(parts.map { |part| described_class.percent(part, 1000) })
      .to eq ["0 %", "<1 %", "1 %", "2 %", "50 %", "99 %", "99 %", "100 %", "150 %"]
  end

  it "has one digit of a percentage in columns" do
    expect([0, 12.34, 100].map { |percent| described_class.percentage(percent) })
      .to eq ["0.0 %", "12.3 %", "100.0 %"]
  end

  it "formats short durations" do
    expect([0, 0.0000001, 0.0003, 0.0123, 0.5, 75].map { |seconds| described_class.short_seconds(seconds) })
      .to eq ["0", "1 us", "300 us", "12.3 ms", "500 ms", "1 min 15 s"]
  end

  it "has no percentage of nothing" do
    expect(described_class.percent(0, 0)).to eq "-"
  end

  it "writes durations" do
    durations = [0, 0.0312, 0.9994, 0.9996, 2.312, 59.99, 59.996, 245, 4000]
    expect(durations.map { |seconds| described_class.seconds(seconds) })
      .to eq ["0 ms", "31 ms", "999 ms", "1.00 s", "2.31 s", "59.99 s", "1 min 0 s", "4 min 5 s",
        "66 min 40 s"]
  end
end

# frozen_string_literal: true

require "memprof/agent/trends"

RSpec.describe Memprof::Agent::Leak do
  def leak(**facts)
    described_class.new(file: "/srv/shop/app/models/page.rb", line: 47, class_name: "String",
      bytes_per_hour: 20.0 * (1 << 20), error: 1e6, hours: 6.0, workers: [8, 8], service: "shop",
      named_at: Time.at(0), **facts)
  end

  before { allow(Memprof::Paths).to receive(:working_directory).and_return("/srv/shop") }

  it "is one line" do
    expect(leak(holder: "PageCache::PAGES -> Array[*]", release: "3fe2a1", since: "3fe2a1").to_s)
      .to eq("app/models/page.rb:47: +20 MiB/h for 6 h in 8 of 8 workers, String in PageCache::PAGES, " \
             "since release 3fe2a1")
    expect(leak(hours: 3.5, workers: [1, 1], bytes_per_hour: 1.5e6).to_s)
      .to eq("app/models/page.rb:47: +1.4 MiB/h for 3.5 h in 1 of 1 worker, String")
    expect(leak(release: "a\n1").to_s).to end_with("String, in release a\\n1")
  end

  it "says what is unknown in its data" do
    expect(leak.to_h)
      .to include(holder: nil, release: nil, since: nil, workers: [8, 8], class: "String", line: 47)
  end

  it "is compared by value" do
    expect(leak).to eq(leak)
    expect([leak, leak.with_holder("X")].uniq.size).to eq(2)
    expect(leak.with_holder("X").holder).to eq("X")
    expect(leak).to be_frozen
  end
end

# frozen_string_literal: true

RSpec.describe Memprof::Report::Site do
  subject(:site) { described_class.new(row) }

  let(:row) do
    FakeProfile.row("/srv/gems/shop-1.0/lib/cache.rb", 12, "String", method: "Cache#fetch", retained: [2, 80],
      freed: [8, 320], ages: [1.5, 4], stack: [
        "/srv/json.rb:9:in JSON.parse", "/srv/gems/shop-1.0/lib/cache.rb:12:in Cache#fetch",
        "app.rb:3:in <main>"
      ])
  end

  it "returns what a row says" do
    expect(site).to have_attributes(
      file: "/srv/gems/shop-1.0/lib/cache.rb", line: 12, location: "/srv/gems/shop-1.0/lib/cache.rb:12",
      gem: "shop-1.0", method_name: "Cache#fetch", class_name: "String", allocated_objects: 10,
      allocated_bytes: 400, retained_objects: 2, retained_bytes: 80, freed_objects: 8, freed_bytes: 320,
      mean_age: 1.5, max_age: 4, stack: row["stack"], callers: ["app.rb:3:in <main>"]
    )
  end

  it "has callers behind its own frame, not behind the C method that it called on the same line" do
    frames = ["a.rb:3:in IO.open", "a.rb:3:in A#b", "a.rb:3:in Array#each", "a.rb:2:in A#c"]
    site = described_class.new(FakeProfile.row("a.rb", 3, "String", method: "A#b", stack: frames))
    expect(site.callers).to eq frames.last(2)
  end

  it "has no callers if only its own frame was recorded" do
    expect(described_class.new(FakeProfile.row("a.rb", 1, "String")).callers).to eq []
    expect(described_class.new(FakeProfile.row("a.rb", 1, "String", stack: [])).callers).to eq []
  end

  it "is frozen, through and through" do
    expect([site, site.file, site.class_name, site.method_name, site.stack, *site.stack]).to all be_frozen
  end

  it "is equal by its facts" do
    other = described_class.new(row.merge("line" => 13))
    expect(site).to eq(described_class.new(row)).and eql(described_class.new(row))
    expect(site).not_to eq other
    expect(site == site.to_h).to be false
    expect({ site => 1 }).to include(described_class.new(row) => 1)
  end

  it "is a Hash of plain values" do
    expect(site.to_h).to eq(
      file: "/srv/gems/shop-1.0/lib/cache.rb", line: 12, method: "Cache#fetch", class: "String",
      gem: "shop-1.0",
      allocated: { objects: 10, bytes: 400 }, retained: { objects: 2, bytes: 80 },
      freed: { objects: 8, bytes: 320 }, ages: { mean: 1.5, max: 4 }, stack: row["stack"]
    )
  end

  it "reads on one line" do
    site = described_class.new(FakeProfile.row("a\n.rb", 1, "String", retained: [1, 40]))
    expect(site.to_s).to eq 'a\n.rb:1 String in <main>: 1 object allocated, 1 retained'
    expect(site.inspect).to eq "#<Memprof::Report::Site #{site}>"
  end

  it "does without a method" do
    site = described_class.new(FakeProfile.row("a.rb", 1, "String", method: nil, stack: []))
    expect(site.to_s).to eq "a.rb:1 String: 0 objects allocated, 0 retained"
  end
end

# frozen_string_literal: true

RSpec.describe Memprof::Growth::Site do
  let(:facts) do
    { file: "a.rb", line: 3, class_name: "String", slope: 1.5, low: 1.25, counts: [1, 3, 4, 6], bytes: 60.0 }
  end
  let(:site) { described_class.new(**facts) }

  it "returns its facts" do
    expect(site).to have_attributes(location: "a.rb:3", **facts)
    expect(site.to_h).to eq(file: "a.rb", line: 3, class: "String", objects_per_run: 1.5,
      objects_per_run_low: 1.25, bytes_per_run: 60.0, counts: [1, 3, 4, 6])
  end

  it "is frozen, through and through" do
    expect([site, site.file, site.class_name, site.counts]).to all be_frozen
    expect(facts[:counts]).not_to be_frozen
  end

  it "is equal by its facts" do
    expect(site).to eq(described_class.new(**facts)).and eql(described_class.new(**facts))
    expect(site.hash).to eq described_class.new(**facts).hash
    expect(site).not_to eq described_class.new(**facts, line: 4)
  end

  it "reads on one line" do
    site = described_class.new(**facts, file: "a\n\xFF.rb")
    expect(site.inspect).to eq '#<Memprof::Growth::Site a\n\xFF.rb:3 String +1.50 objects a run>'
  end
end

# frozen_string_literal: true

require "memprof/cli"
require "tmpdir"
require "memprof/verdict_wording"

RSpec.describe Memprof::VerdictWording do
  kib = 1 << 10
  mib = 1 << 20

  line = ->(file, number, source = nil) do
    { class: "Note", file: file, line: number, method: "add", count: 100, size: 4000, source: source }
  end
  finding = {
    class: "Note", kind: "object", retained_by: ["NOTES -> Array[*]"], also: [["LAST -> Hash[*]"]],
    places: 1, list: false, in_place: false, trend: "grows",
    count: [10, 60, 110], size: [400, 2400, 4400], gained: 4000,
    lines: [line["/app/note.rb", 3]], own: nil, mostly: nil, why: "for a reason", example: nil
  }
  answer = {
    heaps: 3, seconds: 60, findings: [finding, finding.merge(own: line["/app/middleware.rb", 6])], more: 0,
    reachable: [{ size: mib }, { size: mib }], remarks: [], rss: [20 * mib, 20 * mib, 20 * mib],
    memory: { before: 20 * mib, after: 20 * mib, change: 0, objects: 0, iseqs: 0, items: [], cause: nil }
  }

  it "names all that holds the objects, and says nothing twice" do
    words = described_class.new(answer)
    first, second = answer[:findings].map { |one| words.facts(one).compact }
    expect(first).to eq("Retained by" => "NOTES -> Array[*]; also LAST -> Hash[*]",
      "Allocated at" => "/app/note.rb:3 in add", "Because" => "for a reason",
      "Dumps" => "▁▄█ 400 B, 2.3 KiB, 4.3 KiB; 234.4 KiB in an hour")
    expect(second).to include("Application" => "/app/middleware.rb:6 in add")
    expect(second).not_to include("Because")
  end

  it "calls a singleton class what it is" do
    singleton = finding.merge(class: "#<Class:Query::Matchers>", kind: "class", in_place: true,
      count: [1, 1, 1])
    words = described_class.new(answer.merge(findings: [singleton]))
    expect(words.sentence(singleton)).to eq("1 singleton class of Query::Matchers grew by 3.9 KiB")
  end

  it "leaves out a line that only passes a request on" do
    Dir.mktmpdir do |directory|
      path = File.join(directory, "middleware.rb")
      { "@app.call(env)" => nil, "status, headers, body = @app.call(env)" => nil, "super" => nil,
        "yield(request)" => nil, "@app.call(env.merge(note: Note.new))" => 1, "NOTES << Note.new" => 1 }
        .each do |source, expected|
        File.write(path, "  #{source}\n")
        found = described_class.complete(answer.merge(findings: [finding.merge(own: line[path, 1])]))
        expect(found[:findings].first[:own]&.fetch(:line)).to eq(expected), source
      end
    end
  end

  it "names lines whose native memory is live, unless a finding has them" do
    malloc = [["/app/note.rb:3", 2 * mib], ["leak.so(leak+0x12) [0x7f0012]", 400 * kib],
      ["/app/b.rb:1", 9 * kib]]
    expect(described_class.new(answer, malloc: malloc).memory)
      .to eq("RSS stayed at 20.0 MiB. Live memory of malloc since then: leak.so(leak+0x12) (400.0 KiB).")
    expect(described_class.new(answer, malloc: []).memory).to eq("RSS stayed at 20.0 MiB.")
  end

  it "says what C code loses beside RSS, also if RSS did not grow" do
    blocks = { count: 300, bytes: 3 * mib, largest: { size: 10 * kib, count: 290 },
               series: [mib, 2 * mib, 3 * mib] }
    words = described_class.new(answer.merge(blocks: blocks, findings: []))
    expect(words.title).to eq("No Ruby object grows, native memory does")
    expect(words.memory).to eq("RSS stayed at 20.0 MiB. " \
      "Blocks of malloc that nothing references: 1.0 MiB, 2.0 MiB, 3.0 MiB. " \
      "Nothing references 300 blocks of malloc (3.0 MiB, 290 of them of 10.0 KiB).")
  end
end

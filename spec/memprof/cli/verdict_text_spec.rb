# frozen_string_literal: true

require "memprof/cli"

RSpec.describe "The text of a verdict without findings" do
  kib = 1 << 10
  mib = 1 << 20

  # The first line, for a process whose RSS was so large, and so much of its growth malloc's.
  define_method(:title) do |rss, malloc, cause: nil|
    item = { key: "malloc", name: "malloc", change: malloc }
    memory = { before: rss.first, after: rss.last, change: rss.last - rss.first, objects: 5 * kib,
               iseqs: 0, items: [item], cause: cause && item }
    answer = { heaps: rss.size, findings: [], more: 0, reachable: [{ size: 0 }, { size: 0 }], remarks: [],
               rss: rss, memory: memory }
    page = Memprof::CLI::Page.new
    Memprof::CLI.const_get(:VerdictText).new(page, answer).render(:text)
    page.to(:text).lines.first.chomp
  end

  native = "No Ruby object grows, native memory does"

  it "says that native memory grows if it grows by much" do
    expect(title([20 * mib, 30 * mib, 31 * mib], 10 * mib, cause: true)).to eq(native)
  end

  it "does not say so of what grew once, a little, or otherwise" do
    expect(title([20 * mib, 22 * mib, 22.1 * mib].map(&:to_i), 2 * mib)).to eq("Nothing grows")
    expect(title([20 * mib, 20.5 * mib, 21 * mib].map(&:to_i), mib)).to eq("Nothing grows")
    expect(title([20 * mib, 22 * mib, 24 * mib], mib)).to eq("Nothing grows")
    expect(title([20 * mib, 22 * mib], 2 * mib)).to eq("Nothing grows")
  end

  it "names the command that finds the lines of a process" do
    remark = "Allocation lines are unknown: call Memprof.start, and dump again."
    answer = { heaps: 2, findings: [], more: 0, reachable: [{ size: 0 }, { size: 0 }], remarks: [remark],
               rss: [], memory: nil }
    group = Struct.new(:name, :pids, :ended, :malloc, :sample).new("app", [4711], [], [], nil)
    texts = [{}, { group: group }].map do |options|
      page = Memprof::CLI::Page.new
      Memprof::CLI.const_get(:VerdictText).new(page, answer, **options).render(:text)
      page.to(:text).lines.last
    end
    expect(texts.first).to end_with("again.\n")
    expect(texts.last)
      .to eq("Note: Allocation lines are unknown: `memprof leaks --attach 4711` shows them.\n")
  end
end

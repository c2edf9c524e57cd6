# frozen_string_literal: true

require "memprof/web"

RSpec.describe "frames of flame graphs" do
  frames = Memprof::Web::Frames

  # Collapsed stacks: paths with weights.
  def stacks(random, names)
    Array.new(60) { [Array.new(random.rand(1..6)) { names.sample(random: random) }, random.rand(1..99)] }
  end

  def flame(stacks)
    text = stacks.map { |path, weight| "#{path.join(";")} #{weight}\n" }.join
    Memprof::Web::Records::Tracked.read(StringIO.new(text)).flame("weight")
  end

  # The frames of a flame graph by their paths, with the numbers from `from` on.
  def by_path(flame, from)
    paths = []
    flame[:frames].each_with_index.to_h do |(above, name, *numbers), index|
      paths << (index.zero? ? [] : paths[above] + [flame[:names][name]])
      [paths.last, numbers.drop(from)]
    end
  end

  def prefixes(stacks) = stacks.flat_map { |path, _| (0..path.size).map { |size| path.first(size) } }.uniq

  def weight(stacks, path) = stacks.sum { |stack, weight| stack.first(path.size) == path ? weight : 0 }

  def own(stacks, path) = stacks.sum { |stack, weight| stack == path ? weight : 0 }

  it "compares two as adding up stacks does" do
    [1, 2, 3].each do |seed|
      random = Random.new(seed)
      before, after = Array.new(2) { stacks(random, %w[a b c]) }
      both = before + after
      leaves = both.map(&:first).uniq
      expected = prefixes(both).to_h do |path|
        within = leaves.select { |leaf| leaf.first(path.size) == path }
        width = within.sum { |leaf| [own(before, leaf), own(after, leaf)].max }
        [path, [width, nil, nil, weight(before, path), weight(after, path)]]
      end
      expect(by_path(frames.difference(flame(before), flame(after)), 1)).to eq(expected)
    end
  end

  it "leaves out frames of the VM, and merges what they called" do
    random = Random.new(4)
    vm = ["rb_yield (libruby-3.1.so.3.1.2)", "libruby.so.4.0+0xb8010", "_start (ruby3.1)", "ruby+0x110b",
      "__libc_start_main (libc.so.6, libc-start.c:360)"]
    other = ["deflate (libz.so.1.2.13)", "zlib.so+0x4806", "ruby (app.rb:3)", "libruby.rb:7"]
    all = stacks(random, vm + other)
    expect(frames.vm?(flame(all))).to be(true)
    own = all.map { |path, weight| [path - vm, weight] }
    expected = prefixes(own).to_h { |path| [path, [own(own, path), weight(own, path)]] }
    left = frames.without_vm(flame(all))
    expect(by_path(left, 0).transform_values { |numbers| numbers.first(2) }).to eq(expected)
  end

  it "cuts the narrowest frames" do
    whole = flame(stacks(Random.new(5), %w[a b c d]))
    expect(frames.widest(whole, 1000)).to equal(whole)
    cut = frames.widest(whole, 40)
    expect(cut).to include(folded: whole[:frames].size - 40)
    expect(by_path(whole, 0).to_a).to include(*by_path(cut, 0).to_a)
    totals = [whole, cut].map { |one| one[:frames].map { |frame| frame[3] }.sort.reverse.first(40) }
    expect(totals.uniq.size).to eq(1)
  end
end

# frozen_string_literal: true

RSpec.describe Memprof::Compat do
  root = File.expand_path("../..", __dir__)
  names = /heap_dump|HeapDump|memdump|sheap|\bchap\b/i
  # A line that loads an adapter, and a list of the formats of dumps, one of which is heap_dump's.
  allowed = %r{\bCompat::|\bcompat/|\bbinary\b.*\bheap_dump\b}

  it "is the only place that names these tools, except for what loads it" do
    files = Dir["{exe,lib,sig,web}/**/*", base: root].select { |file| File.file?(File.join(root, file)) }
    files.reject! { |file| file.match?(%r{\.(?:so|bundle)\z|memprof/compat/}) || file == "lib/heap_dump.rb" }
    expect(files.size).to be > 300
    found = files.flat_map do |file|
      lines = File.readlines(File.join(root, file), encoding: Encoding::BINARY)
      lines.grep(names).grep_v(allowed).map { |line| "#{file}: #{line.strip}" }
    end
    expect(found).to eq([])
  end

  it "loads what is required by its old name" do
    code = 'require "memprof/filter"; require "heap_dump"; p Memprof::Filter, HeapDump.verbose'
    expect(run_ruby(code).stdout.lines(chomp: true)).to eq(["Memprof::Filter", "false"])
  end
end

# frozen_string_literal: true

require "memprof/agent/trends"
require "json"

RSpec.describe Memprof::Agent::Trends::Holder do
  include ChildRuby

  it "names what retains the objects, by one copy that is read elsewhere" do
    result = run_ruby(<<~'RUBY', env: { "MEMPROF_AGENT" => "off" })
      require "memprof"
      require "memprof/agent/trends"
      require "json"
      Page = Struct.new(:body)
      module PageCache
        PAGES = Array.new(20_000) { |index| Page.new(index) }
      end
      OTHERS = Array.new(100) { Page.new(nil) }
      holder = Memprof::Agent::Trends::Holder
      before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      found = [
        holder.find("app.rb", 3, "Page", 20_000 * 40),
        holder.find("app.rb", 3, "Page", 10 << 20),
        holder.find("app.rb", 3, "NoSuchClass", 1000)
      ]
      def holder.free_memory = 0
      found << holder.find("app.rb", 3, "Page", 20_000 * 40)
      def holder.free_memory = nil
      found << holder.find("app.rb", 3, "Page", 20_000 * 40)
      puts JSON.generate(found)
      begin
        puts Process.wait(-1)
      rescue Errno::ECHILD
        puts "no child is left"
      end
    RUBY
    expect(result.stderr).to eq("")
    expect(JSON.parse(result.stdout.lines.first)).to eq(["PageCache::PAGES -> Array[*]", nil, nil, nil, nil])
    expect(result.stdout.lines.last).to eq("no child is left\n")
  end

  it "knows how much memory is free" do
    expect(described_class.free_memory).to be > 1 << 20
  end

  it "names nothing if two paths retain similar amounts" do
    heap = Class.new do
      def merged_paths(where:, limit:)
        rows = [{ size: 100, retained_by: ["A"] }, { size: 60, retained_by: ["B"] }]
        { rows: where.start_with?("site") ? [] : rows.first(limit) }
      end
    end
    expect(described_class.path_in(heap.new, "a.rb:1", "String", 100)).to be_nil
  end
end

# frozen_string_literal: true

require "tmpdir"

# Dumps of a small program with a cache that leaks: made once, by a process of its own.
module Shop
  PROGRAM = <<~'RUBY'
    require "memprof"
    class Session
      attr_reader :user
      def initialize(number)
        @user = "user:#{number}"
        @pages = Array.new(3) { "x" * 1000 }
      end
    end
    class Guest < Session; end
    module Cache
      STORE = {}
      def self.fetch(number) = STORE["key:#{number}"] ||= Session.new(number)
    end
    def fill(numbers) = numbers.each { |number| Cache.fetch(number) }
    def drop(numbers) = numbers.each { |number| Cache::STORE.delete("key:#{number}") }
    Memprof.start
    fill(1..100)
    GUEST = Guest.new(0)
    PAIR = [:both, "of them".freeze]
    GC.start
    Memprof.dump_all("before.memprof")
    fill(101..150)
    GC.start
    Memprof.dump_all("after.memprof")
    drop(141..150)
    GC.start
    Memprof.dump_all("later.json.gz")
  RUBY
  FILES = %w[before.memprof after.memprof later.json.gz].freeze

  class << self
    # Paths of the dumps, in the order of time.
    def dumps
      @dumps ||= begin
        directory = Dir.mktmpdir
        at_exit { FileUtils.rm_rf(directory) }
        program = File.join(directory, "shop.rb")
        File.write(program, PROGRAM)
        environment = { "RUBYOPT" => nil }
        system(environment, RbConfig.ruby, "-I#{ChildRuby::LIB}", program, chdir: directory, exception: true)
        FILES.map { |name| File.join(directory, name) }
      end
    end

    # The heaps of the dumps.
    def heaps
      @heaps ||= dumps.map { |path| Memprof::Heap.open(path, index: false) }
    end

    def heap = heaps.first
  end
end

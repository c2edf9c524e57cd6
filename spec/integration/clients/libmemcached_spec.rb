# frozen_string_literal: true

# There is no gem for libmemcached in Debian, so it is called as Fiddle does it: by address, through libffi.
RSpec.describe "Calls of libmemcached through Fiddle" do
  include MemcacheReports

  before(:all) { need(server: :memcached, library: "libmemcached.so.11") }

  prelude = <<~RUBY
    require "fiddle"

    # What the spec needs of the library.
    module Memcached
      TYPES = {
        create: [[:voidp], :voidp], free: [[:voidp], :void],
        server_add: [%i[voidp voidp short], :int],
        get: [%i[voidp voidp size_t voidp voidp voidp], :voidp],
        set: [%i[voidp voidp size_t voidp size_t long int], :int],
        add: [%i[voidp voidp size_t voidp size_t long int], :int],
        delete: [%i[voidp voidp size_t long], :int],
        increment: [%i[voidp voidp size_t int voidp], :int],
        mget: [%i[voidp voidp voidp size_t], :int],
        fetch: [%i[voidp voidp voidp voidp voidp voidp], :voidp],
      }
      CODES = { size_t: Fiddle::TYPE_SIZE_T, voidp: Fiddle::TYPE_VOIDP, int: Fiddle::TYPE_INT, void: Fiddle::TYPE_VOID,
                long: Fiddle::TYPE_LONG, short: Fiddle::TYPE_SHORT }

      def self.load
        library = Fiddle.dlopen("libmemcached.so.11")
        @functions = TYPES.to_h do |name, (arguments, result)|
          [name, Fiddle::Function.new(library["memcached_\#{name}"], arguments.map { |type| CODES[type] }, CODES[result])]
        end
      end

      def self.call(name, *arguments) = @functions.fetch(name).call(*arguments)
    end

    # A connection.
    class Client
      def initialize
        @client = Memcached.call(:create, nil)
        Memcached.call(:server_add, @client, "127.0.0.1", Integer(ENV.fetch("MEMCACHED_PORT")))
        @size, @flags, @code = Array.new(3) { Fiddle::Pointer.malloc(8, Fiddle::RUBY_FREE) }
        @key = Fiddle::Pointer.malloc(256, Fiddle::RUBY_FREE)
      end

      def get(key) = text(Memcached.call(:get, @client, key, key.bytesize, @size, @flags, @code))
      def set(key, value, by: :set) = Memcached.call(by, @client, key, key.bytesize, value, value.bytesize, 0, 0)
      def add(key, value) = set(key, value, by: :add)
      def delete(key) = Memcached.call(:delete, @client, key, key.bytesize, 0)
      def increment(key) = Memcached.call(:increment, @client, key, key.bytesize, 1, @size)

      def mget(*keys)
        texts = keys.map { |key| Fiddle::Pointer[key].to_i }.pack("J*")
        Memcached.call(:mget, @client, texts, keys.map(&:bytesize).pack("J*"), keys.size)
        found = {}
        while (value = text(Memcached.call(:fetch, @client, @key, @flags, @size, @flags + 4, @code)))
          found[@key[0, @flags[0, 8].unpack1("J")]] = value
        end
        found
      end

      private

      def text(pointer) = pointer.null? ? nil : pointer[0, @size[0, 8].unpack1("J")]
    end
  RUBY
  # Runs code in a trace; besides the report gives what the server counted meanwhile.
  define_method(:asked) do |code, load: "Memcached.load"|
    client_program(<<~RUBY, server: :memcached)
      #{prelude}
      require "socket"
      status = -> do
        TCPSocket.open("127.0.0.1", Integer(ENV.fetch("MEMCACHED_PORT"))) do |socket|
          socket.write("stats\\r\\n")
          lines = socket.each_line("\\r\\n", chomp: true).take_while { |line| line != "END" }
          lines.to_h { |line| line.split(" ", 3).last(2) }.transform_values(&:to_i)
        end
      end
      #{load}
      first = status.call
      tracers = traced(tracers: %i[memcache fd]) { #{code} }
      last = status.call
      emit(**tracers, server: last.to_h { |name, value| [name, value - first[name]] })
    RUBY
  end

  work = <<~RUBY
    client = Client.new
    client.delete("count")
    client.set("a", "value")
    raise "wrong" unless client.get("a") == "value"
    raise "wrong" if client.get("nothing \#{rand}".tr(" ", "_"))

    client.add("a", "other")
    client.add("count", "1")
    2.times { client.increment("count") }
    raise "wrong" unless client.mget("a", "count", "nobody") == { "a" => "value", "count" => "3" }

    client.delete("a")
    client.delete("a")
  RUBY

  def expect_all(result)
    server = result["server"]
    expect(calls(result)).to eq("get" => 2, "set" => 1, "add" => 2, "increment" => 2, "delete" => 3,
      "mget" => 1, "fetch" => 3)
    expect(server).to include("cmd_get" => 5, "cmd_set" => 3, "incr_hits" => 2, "get_hits" => 3)
    expect(answers(result, "get")).to eq("success" => 1, "notfound" => 1)
    # 14 is libmemcached's code for what was not stored, 21 for the end of what is fetched.
    expect(answers(result, "add")).to eq("success" => 1, "14" => 1)
    expect(answers(result, "fetch")).to include("success" => 2)
    expect(answers(result, "delete")["success"]).to eq(server["delete_hits"])
  end

  it "are those that the server got, though their addresses were fetched before the trace" do
    expect_all(asked(work))
  end

  it "are seen when the library is loaded in the middle of a trace" do
    expect_all(asked("Memcached.load\n#{work}", load: "nil"))
  end

  it "are counted for the thread that calls, and for none after the trace" do
    result = client_program(<<~RUBY, server: :memcached)
      #{prelude}
      Memcached.load
      clients = Array.new(2) { Client.new }
      sets = ->(**options, &block) { traced(tracers: :memcache, **options, &block)["memcache"].dig("set", "calls") }
      own = nil
      all = sets.call(scope: :process) do
        own = clients.zip([20, 50]).map do |client, times|
          Thread.new { sets.call { times.times { client.set("a", "1") && Thread.pass } } }
        end.map(&:value)
      end
      clients.first.set("a", "1")
      emit(own: own, all: all, idle: sets.call { nil })
    RUBY
    expect(result).to eq("own" => [20, 50], "all" => 70, "idle" => nil)
  end
end

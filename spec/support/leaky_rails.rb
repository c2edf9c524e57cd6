# frozen_string_literal: true

require "json"
require "net/http"
require "tmpdir"
require_relative "child_ruby"

# Dumps of a leaking Rails app, written once for all examples: spec/fixtures/apps/leaky_rails.
module LeakyRails
  APP = File.expand_path("../fixtures/apps/leaky_rails/app.rb", __dir__)
  VISITS = 150 # between two dumps
  ENVIRONMENT = { "RUBYOPT" => nil, "LC_ALL" => "C.UTF-8", "RAILS_ENV" => "production" }.freeze

  # A process with the app, which has loaded memprof/signal.
  class Server
    attr_reader :directory, :port

    # @param directory [String] for its output
    # @param token [String, nil] of Memprof::Web in it; nil to leave that out
    # @param app [String] a copy of the app elsewhere
    def initialize(directory, token: nil, app: APP)
      @directory = directory
      @errors = File.join(directory, "stderr")
      @visits = 0
      command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", *("-rmemprof/signal" unless token), app]
      variables = { "MEMPROF_DIR" => directory, "MEMPROF_WEB_TOKEN" => token }
      @process = IO.popen({ **ENVIRONMENT, **variables }, command, "r+", err: @errors,
        chdir: File.dirname(app))
      @port = Integer(answer)
    end

    # Sends so many more requests, each for another path.
    def visit(count)
      return ask("visit #{count}") if @port.zero?

      Net::HTTP.start("127.0.0.1", @port) do |http|
        count.times do
          response = http.get("/products/#{@visits += 1}")
          raise "#{response.code}: #{response.body}" unless response.code == "200"
        end
        # The stack of the thread that served the last one may still reference its objects.
        3.times { http.get("/about") }
      end
    end

    # Sends the app a command, and waits until it is done.
    def ask(command)
      @process.puts(command)
      raise "the app did not #{command}" unless answer == "done"
    end

    # The dump written on SIGURG.
    def signal
      before = dumps
      Process.kill(:URG, @process.pid)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 120
      until (written = dumps - before).any?
        late = Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
        raise "no dump: #{File.read(@errors)}" if late

        sleep(0.02)
      end
      written.first
    end

    def stop
      @process.close_write
      @process.close
    end

    private

    def dumps
      Dir[File.join(@directory, "memprof-*.json")]
    end

    def answer
      @process.gets&.chomp || raise("the app ended: #{File.read(@errors)}")
    end
  end

  # The dumps of the app: `:first`, `:second` and `:third` by SIGURG after as many visits each, `:binary` by
  # dump_all, and `:objspace` by Ruby itself.
  #
  # @return [Hash{Symbol => String}] paths
  def self.dumps(directory)
    server = Server.new(directory)
    paths = %i[first second third].to_h do |name|
      server.visit(VISITS)
      [name, server.signal]
    end
    paths[:binary] = File.join(directory, "last.memprof")
    server.ask("memprof #{paths[:binary]}")
    paths[:objspace] = File.join(directory, "objspace.json")
    server.ask("objspace #{paths[:objspace]}")
    paths
  ensure
    server&.stop
  end

  # Files for a browser: `:before` and `:after`, two dumps, and `:report`, the allocations of requests, with
  # call stacks.
  #
  # @param app [String] a copy of the app elsewhere
  # @return [Hash{Symbol => String}] paths
  def self.files(directory, app: APP)
    paths = { before: "before.memprof", after: "after.memprof", report: "shop.json" }
      .transform_values { |name| File.join(directory, name) }
    server = Server.new(directory, app: app)
    paths.values_at(:before, :after).each do |path|
      server.visit(VISITS)
      server.ask("memprof #{path}")
    end
    server.ask("report #{paths[:report]}")
    paths
  ensure
    server&.stop
  end

  # The text of that line.
  def self.source(what)
    File.readlines(APP)[line(what) - 1].chomp
  end

  # The line of the app with the comment `leak: the WHAT`.
  def self.line(what)
    File.readlines(APP).index { |line| line.include?("# leak: the #{what}") } + 1
  end
end

# frozen_string_literal: true

require "fileutils"
require "json"
require "memprof/library"
require "net/http"
require "securerandom"
require "tmpdir"
require_relative "chromium"
require_relative "leaky_rails"
require_relative "web_process"

# What browsers look at: `memprof web` with two dumps of a Rails app that leaks, a library, what its requests
# cost and what they allocated; and that app itself, with Memprof::Web in it. Made once, when the first asks.
class WebStage
  TOKEN = SecureRandom.hex(12)
  KEY = SecureRandom.hex(12)
  REQUESTS = 40
  IMPORT = File.expand_path("../fixtures/apps/import.rb", __dir__)
  # Answers of the browser's checks, by name.
  APPEARANCE = File.read(File.expand_path("chromium/appearance.js", __dir__))
  ROOT_MARK = "/etc/memprof-root"
  private_constant :REQUESTS, :IMPORT, :ROOT_MARK

  class << self
    # @return [WebStage] which goes when the process ends
    def shared
      @shared ||= begin
        starter = Process.pid
        at_exit { @shared&.close if Process.pid == starter }
        new
      end
    end

    # Says what is missing here, if something is: on CI nothing may be, but in the roots of bin/in-root, which
    # have no browser.
    #
    # @yieldparam obstacle [String]
    def missing
      reason = obstacle or return
      strict = ENV["CI"] && RUBY_VERSION.start_with?("3.1") && !File.exist?(ROOT_MARK)
      raise "CI must have this: #{reason} (see bin/setup)" if strict

      yield(reason)
    end

    private

    # @return [String, nil] why there can be none
    def obstacle
      return "chromium is not installed" unless Chromium.program

      code = "require 'logger'; require 'rails'; require 'action_controller/railtie'; require 'puma'"
      "Rails and puma are not installed" unless system(RbConfig.ruby, "-e", code, err: File::NULL)
    end
  end

  # @return [Hash{Symbol => String}] paths: `:before`, `:after`, `:requests`, `:report`, `:recording`, `:boot`
  attr_reader :files
  # @return [LeakyRails::Server] the app
  attr_reader :app
  # @return [Chromium]
  attr_reader :browser

  def initialize
    @directory = Dir.mktmpdir("shop-")
    shop = File.join(@directory, "app.rb")
    FileUtils.cp(LeakyRails::APP, shop) # pages show its path: not that of this checkout
    # Rails takes its time to start.
    starting = Thread.new { LeakyRails::Server.new(made("live"), token: TOKEN, app: shop) }
    @files = LeakyRails.files(@directory, app: shop)
    @app = starting.value
    @files[:requests] = requests
    @files[:recording] = recording
    @files[:boot] = boot
    fill_library
    @web = WebProcess.new("--token", TOKEN, "--library=#{library}", "--key", KEY,
      *@files.values_at(:before, :after, :requests, :report, :recording, :boot), chdir: @directory)
    @browser = Chromium.new
  rescue StandardError
    @app ||= starting&.value
    close
    raise
  end

  # @return [String] where the dumps are shown, as "http://127.0.0.1:7000"
  def dumps = @web.origin

  # @return [String] where the app is
  def shop = "http://127.0.0.1:#{app.port}"

  # @return [String] where the app shows itself
  def live = "#{shop}/memprof"

  # @param options [Hash] of {Chromium#tab}
  # @return [Chromium::Tab] which is let in everywhere
  def tab(**options)
    browser.tab(**options).tap do |tab|
      [dumps, live].each { |place| tab.go("#{place}/?token=#{TOKEN}") }
      tab.watch.forget
    end
  end

  # Ends all that was started, also what was not wholly.
  def close
    [-> { @browser&.close }, -> { @web&.stop }, -> { @app&.stop }].each(&:call)
  ensure
    FileUtils.rm_rf(@directory) if @directory
  end

  private

  def library = File.join(@directory, "library")

  def made(name) = File.join(@directory, name).tap { |path| Dir.mkdir(path) }

  # Two dumps that somebody has sent.
  def fill_library
    shelf = Memprof::Library.new(library)
    files.values_at(:before, :after).each { |path| shelf.take(app: "shop") { |io| IO.copy_stream(path, io) } }
  end

  # What a program allocates with malloc, with native frames.
  def recording
    File.join(@directory, "import.malloc").tap do |path|
      program = File.join(@directory, "import.rb")
      FileUtils.cp(IMPORT, program)
      command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "import.rb", path]
      raise "no recording of malloc" unless system(LeakyRails::ENVIRONMENT, *command, chdir: @directory)
    end
  end

  # What the libraries of the app require.
  def boot
    File.join(@directory, "boot.json").tap do |path|
      memprof = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
      program = [RbConfig.ruby, "-e", "require 'logger'; require 'action_controller/railtie'"]
      system(*memprof, "boot", "--json", "-o", path, "--", *program, exception: true)
    end
  end

  # What requests of the app cost, as it reports; but a hundredth of a second apart: on a busy machine most of
  # them may come in no time, and none in what somebody chooses of it.
  def requests
    File.join(@directory, "requests.json").tap do |path|
      Net::HTTP.start("127.0.0.1", app.port) do |http|
        secret = { "Authorization" => "Bearer #{TOKEN}" }
        http.post("/memprof/live/requests", "count=#{REQUESTS}", secret)
        app.visit(REQUESTS)
        records = http.get("/memprof/live/requests-file", secret).body.lines.map { |line| JSON.parse(line) }
        start = records.first["start"]
        records.each_with_index { |record, number| record["start"] = start + (number * 10_000) }
        File.write(path, records.map { |record| "#{JSON.generate(record)}\n" }.join)
      end
    end
  end
end

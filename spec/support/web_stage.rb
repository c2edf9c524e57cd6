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

# The sites that browsers visit: `memprof web` with two dumps of a leaking Rails app, a library, and the costs
# and allocations of its requests; and that app itself, with Memprof::Web in it. Created on first use.
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
    # @return [WebStage] closed at process exit
    def shared
      @shared ||= begin
        starter = Process.pid
        at_exit { @shared&.close if Process.pid == starter }
        new
      end
    end

    # Yields the missing requirement, if any: on CI that fails, except in the roots of bin/in-root, which have
    # no browser.
    #
    # @yieldparam obstacle [String]
    def missing
      reason = obstacle or return
      strict = ENV["CI"] && RUBY_VERSION.start_with?("3.1") && !File.exist?(ROOT_MARK)
      raise "CI must have this: #{reason} (see bin/setup)" if strict

      yield(reason)
    end

    private

    # @return [String, nil] the missing requirement
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
    # Rails is slow to start.
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

  # @return [String] the address of the dumps, such as "http://127.0.0.1:7000"
  def dumps = @web.origin

  # @return [String] the address of the app
  def shop = "http://127.0.0.1:#{app.port}"

  # @return [String] the address of Memprof::Web in the app
  def live = "#{shop}/memprof"

  # @param options [Hash] of {Chromium#tab}
  # @return [Chromium::Tab] which has access everywhere
  def tab(**options)
    browser.tab(**options).tap do |tab|
      [dumps, live].each { |place| tab.go("#{place}/?token=#{TOKEN}") }
      tab.watch.forget
    end
  end

  # Ends everything that was started, even partially.
  def close
    [-> { @browser&.close }, -> { @web&.stop }, -> { @app&.stop }].each(&:call)
  ensure
    FileUtils.rm_rf(@directory) if @directory
  end

  private

  def library = File.join(@directory, "library")

  def made(name) = File.join(@directory, name).tap { |path| Dir.mkdir(path) }

  # Two uploaded dumps.
  def fill_library
    shelf = Memprof::Library.new(library)
    files.values_at(:before, :after).each { |path| shelf.take(app: "shop") { |io| IO.copy_stream(path, io) } }
  end

  # The malloc allocations of a program, with native frames.
  def recording
    File.join(@directory, "import.malloc").tap do |path|
      program = File.join(@directory, "import.rb")
      FileUtils.cp(IMPORT, program)
      command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", "import.rb", path]
      raise "no recording of malloc" unless system(LeakyRails::ENVIRONMENT, *command, chdir: @directory)
    end
  end

  # The requires of the app's libraries.
  def boot
    File.join(@directory, "boot.json").tap do |path|
      memprof = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof")]
      program = [RbConfig.ruby, "-e", "require 'logger'; require 'action_controller/railtie'"]
      system(*memprof, "boot", "--json", "-o", path, "--", *program, exception: true)
    end
  end

  # Costs of the app's requests, as it reports them; but spaced a hundredth of a second apart: on a busy
  # machine most might be simultaneous, and a selected time range empty.
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

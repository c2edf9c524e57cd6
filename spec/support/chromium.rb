# frozen_string_literal: true

require "fileutils"
require "io/nonblock"
require "json"
require "tmpdir"
require_relative "chromium/connection"
require_relative "chromium/tab"

# A headless Chromium, driven by the DevTools protocol through two pipes: no gem, no driver, no port.
#
#     Chromium.open do |browser|
#       tab = browser.tab
#       tab.go("http://127.0.0.1:7000/")
#       tab.click("nav a")
#     end
class Chromium
  NAMES = %w[chromium chromium-browser google-chrome-stable google-chrome].freeze
  # No network access and no desktop integration. As root, and in containers, its sandbox is unavailable; it
  # only opens our own pages.
  SWITCHES = %w[
    --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --no-default-browser-check
    --disable-background-networking --disable-component-update --disable-sync --disable-extensions
    --mute-audio --metrics-recording-only --hide-scrollbars --force-color-profile=srgb --remote-debugging-pipe
  ].freeze
  private_constant :NAMES, :SWITCHES

  # A command failed or timed out.
  class Error < StandardError; end

  class << self
    # @return [String, nil] the program; MEMPROF_CHROMIUM overrides it
    def program
      named = ENV.fetch("MEMPROF_CHROMIUM", "")
      names = named.empty? ? NAMES : [named]
      directories = ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
      names.flat_map { |name| directories.map { |directory| File.expand_path(name, directory) } }
        .find { |path| File.file?(path) && File.executable?(path) }
    end

    # Opens a browser, and closes it after the block.
    #
    # @yieldparam browser [Chromium]
    # @return [Object] of the block
    def open
      browser = new
      yield(browser)
    ensure
      browser&.close
    end
  end

  # @raise [Error] if Chromium is missing, or does not answer
  def initialize
    program = Chromium.program or raise Error, "chromium is not installed"
    @profile = Dir.mktmpdir("memprof-chromium-")
    start(program)
    @connection.ask("Browser.getVersion")
  rescue StandardError
    close
    raise
  end

  # @param size [Array<Integer>] width and height of its window, in CSS pixels
  # @return [Tab] an empty one
  def tab(size: [1280, 800])
    target = @connection.ask("Target.createTarget", url: "about:blank")["targetId"]
    session = @connection.ask("Target.attachToTarget", targetId: target, flatten: true)["sessionId"]
    Tab.new(@connection, session, target).tap { |tab| tab.resize(*size) }
  end

  # Ends it and all its processes, whatever its state.
  def close
    @connection&.close
    stop if @pid
    FileUtils.rm_rf(@profile) if @profile
  end

  private

  # Chromium reads requests from its descriptor 3, and writes answers to 4. Ruby's pipes are nonblocking, and
  # Chromium treats an empty read as EOF.
  def start(program)
    theirs, requests = IO.pipe
    answers, ours = IO.pipe
    [theirs, ours].each { |io| io.nonblock = false }
    @errors = File.join(@profile, "stderr")
    environment = { "LC_ALL" => "C.UTF-8", "HOME" => @profile, "DBUS_SESSION_BUS_ADDRESS" => nil }
    @pid = Process.spawn(environment, program, *SWITCHES, "--user-data-dir=#{@profile}/profile",
      3 => theirs, 4 => ours, in: File::NULL, out: File::NULL, err: @errors, pgroup: true)
    @connection = Connection.new(requests, answers)
  ensure
    [theirs, ours].each { |io| io&.close }
  end

  # Its helpers are in its process group.
  def stop
    Process.kill(:KILL, -@pid)
    Process.wait(@pid)
  rescue Errno::ESRCH, Errno::ECHILD
    nil # it has ended
  ensure
    @pid = nil
  end
end

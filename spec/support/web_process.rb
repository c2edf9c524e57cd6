# frozen_string_literal: true

require "rbconfig"
require "tempfile"
require "uri"
require_relative "child_ruby"

# `memprof web` as run by a user, on a free port.
class WebProcess
  PATIENCE = 120 # seconds
  private_constant :PATIENCE

  # @return [String] the printed address, which opens once
  attr_reader :address
  # @return [Integer]
  attr_reader :pid

  # Runs `memprof web`, and ends it after the block.
  #
  # @yieldparam web [WebProcess]
  # @return [Object] of the block
  def self.run(*arguments, **options)
    web = new(*arguments, **options)
    yield(web)
  ensure
    web&.stop
  end

  # @param arguments [Array<String>] of the command
  # @param env [Hash{String => String}]
  # @param open [Boolean] whether it may start a browser
  # @param chdir [String] working directory
  def initialize(*arguments, env: {}, open: false, chdir: Dir.pwd)
    @errors = Tempfile.new("memprof-web")
    environment = { "RUBYOPT" => nil, "LC_ALL" => "C.UTF-8", "MEMPROF_KEY" => nil, "MEMPROF_LIBRARY" => nil }
    command = [RbConfig.ruby, "-I#{ChildRuby::LIB}", File.join(ChildRuby::ROOT, "exe/memprof"), "web",
      *("--no-open" unless open), *arguments]
    @output = IO.popen({ **environment, **env }, command, err: @errors.path, chdir: chdir)
    @pid = @output.pid
    @address = first_line
  rescue StandardError
    stop
    raise
  end

  # @return [String] scheme, host and port
  def origin = URI(address).origin

  # @return [String] its stderr so far
  def errors = File.read(@errors.path)

  # Ends it as Ctrl-C does.
  #
  # @return [Integer, nil] its status; nil if it had already ended
  def stop
    return if @output.nil? || @output.closed?

    Process.kill(:INT, @pid)
    @output.close
    $?.exitstatus
  rescue Errno::ESRCH
    nil
  ensure
    @errors.close!
  end

  private

  def first_line
    raise "memprof web does not start:\n#{errors}" unless @output.wait_readable(PATIENCE)

    @output.gets&.chomp || raise("memprof web ended:\n#{errors}")
  end
end

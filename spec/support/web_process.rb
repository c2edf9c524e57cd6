# frozen_string_literal: true

require "rbconfig"
require "tempfile"
require "uri"
require_relative "child_ruby"

# `memprof web` as a user runs it, on a port that is free.
class WebProcess
  PATIENCE = 120 # seconds
  private_constant :PATIENCE

  # @return [String] what it printed: the address that opens once
  attr_reader :address
  # @return [Integer]
  attr_reader :pid

  # Runs one, and ends it after the block.
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
  # @param chdir [String] where it is started
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

  # @return [String] what it said on stderr until now
  def errors = File.read(@errors.path)

  # Ends it, in the way of Ctrl-C.
  #
  # @return [Integer, nil] its status; nil if it has ended before
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

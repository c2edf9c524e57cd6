# frozen_string_literal: true

# Core files of running programs, written by gcore (part of gdb).
module CoreFiles
  # A Ruby with strings of 20,000 bytes and 200 blocks leaked in C: every second one has 3,000 bytes, and a
  # block of 3,100 contains its address.
  LEAKING = <<~'RUBY'
    require "fiddle"
    KEPT = Array.new(60) { |index| "<b>kept #{index}</b>".ljust(20_000 + index, "k") }
    def leak
      100.times do
        inner = Fiddle.malloc(3000)
        Fiddle::Pointer.new(inner)[0, 3000] = "\0" * 3000
        Fiddle::Pointer.new(Fiddle.malloc(3100))[0, 16] = [inner].pack("Q") + "<script>"
      end
    end
    leak
    GC.start
    GC.disable
    puts "ready"
    $stdout.flush
    $stdin.read
  RUBY

  # The reason to skip an example where no core file can be written.
  def self.obstacle
    return "gcore is not installed (the package gdb)" unless system("which gcore > /dev/null")

    "needs root, or the permission to trace any process" unless Process.euid.zero?
  end

  # @param command [Array<String>] prints a line when it is ready, and ends with its stdin
  # @return [String] the path; nil if gcore may not trace
  def self.write(directory, *command)
    IO.popen({ "RUBYOPT" => nil }, command, "r+") do |io|
      io.gets
      path = File.join(directory, "core")
      written = system("gcore", "-o", path, io.pid.to_s, out: File::NULL, err: File::NULL)
      io.close_write
      "#{path}.#{io.pid}" if written
    end
  end
end

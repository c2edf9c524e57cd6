# frozen_string_literal: true

require_relative "../cli"
require_relative "../library"

module Memprof
  module MCP
    # A dump of a running process, without values. It goes to the library, like those of `memprof leaks PID`:
    # the client names no file.
    class TakenDump
      def initialize(terminal)
        @terminal = terminal
      end

      def call(arguments)
        pid = arguments.fetch("pid").to_s
        path = CLI::Scratch.directory { |directory| stored(pid, written(pid, directory)) }
        page = CLI::Page.new.heading("The dump of process #{pid}").facts("File" => path)
        steps = [[["leaks", path], "what is large in it"], [["top", path], "the largest objects"]]
        [{ file: path }, page, steps]
      end

      private

      def written(pid, directory)
        path = File.join(directory, "heap.memprof")
        quiet = CLI::Terminal.new(out: StringIO.new, err: StringIO.new)
        command = CLI.command("dump", quiet).extend(Captured)
        status = command.start(["--contents=none", "--output=#{path}", "--", pid])
        return path if status.zero?

        raise CLI::UsageError, "the dump of process #{pid} failed"
      end

      def stored(pid, path)
        name = CLI::Target.new(pid.to_i).name
        library = Library.new(Library.default_directory)
        library.take(app: name, name: "#{name}, for a model", facts: { pid: pid.to_i }) do |part|
          IO.copy_stream(path, part)
        end.path
      end
    end
  end
end

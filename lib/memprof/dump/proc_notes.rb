# frozen_string_literal: true

require "json"
require_relative "../printable"

module Memprof
  module Dump
    # Open files and sizes of the process, from /proc. Where there is none, as on macOS, they are left out.
    #
    # @api private
    module ProcNotes
      STATUS = "/proc/self/status"
      DESCRIPTORS = "/proc/self/fd"
      TYPES = { "file" => "REG", "directory" => "DIR", "characterSpecial" => "CHR", "blockSpecial" => "BLK",
                "fifo" => "FIFO", "socket" => "sock" }.freeze
      MODES = { File::RDONLY => "r", File::WRONLY => "w", File::RDWR => "u" }.freeze
      ACCESS = 3 # O_ACCMODE: the bits of the flags that say which
      private_constant :STATUS, :DESCRIPTORS, :TYPES, :MODES, :ACCESS

      class << self
        # @param options [Options] without contents, names of files are left out
        # @return [Array<Array(String, String)>] notes
        def notes(options)
          [*files(options.contents?), *sizes]
        end

        # @return [Integer, nil] resident bytes
        def rss
          kib = status("VmRSS")
          kib && (Integer(kib, 10) * 1024)
        end

        private

        def files(names)
          numbers = Dir.children(DESCRIPTORS).map(&:to_i).sort
          numbers.filter_map { |number| file(number, names) }.each_with_index.map do |facts, index|
            ["lsof", JSON.generate({ _id: "lsof:#{index}", type: "lsof" }.merge(facts))]
          end
        rescue SystemCallError
          [] # no /proc here
        end

        def file(number, names)
          path = "#{DESCRIPTORS}/#{number}"
          name = File.readlink(path)
          facts = { fd: "#{number}#{mode(number)}", fd_type: TYPES.fetch(kind(path), "unknown") }
          names ? facts.merge(fd_name: Printable.utf8(name)) : facts
        rescue SystemCallError
          nil # closed since, as the directory that was just read
        end

        # An inode without a type, as an epoll or a timer has, has none for Ruby either.
        def kind(path)
          File.stat(path).ftype
        end

        def mode(number)
          flags = File.read("/proc/self/fdinfo/#{number}")[/^flags:\s*(\d+)/, 1]
          MODES[flags.to_i(8) & ACCESS] if flags
        end

        def sizes
          rss = status("VmRSS")
          vsize = status("VmSize")
          rss && vsize ? [["ps", JSON.generate(_id: "ps", type: "ps", rss: rss, vsize: vsize)]] : []
        end

        # In KiB, as text.
        def status(name)
          File.read(STATUS)[/^#{name}:\s*(\d+) kB/, 1]
        rescue SystemCallError
          nil
        end
      end
    end
  end
end

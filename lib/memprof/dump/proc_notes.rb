# frozen_string_literal: true

require_relative "../printable"

module Memprof
  module Dump
    # Open files and sizes of the process, from /proc. Left out where it does not exist, as on macOS.
    #
    # The extension reads them: since Ruby 3.2 each file access from Ruby lets all other threads run first,
    # and with three busy threads that takes 0.3 seconds each.
    module ProcNotes
      # By the type bits of a file's mode, see stat(2). An epoll or a timer has none.
      TYPES = { 0o100000 => "REG", 0o040000 => "DIR", 0o020000 => "CHR", 0o060000 => "BLK",
                0o010000 => "FIFO", 0o140000 => "sock" }.freeze
      MODES = { File::RDONLY => "r", File::WRONLY => "w", File::RDWR => "u" }.freeze
      ACCESS = 3 # O_ACCMODE: the mask of the access mode
      private_constant :TYPES, :MODES, :ACCESS

      class << self
        def notes(options) = [*files(options.contents?), *sizes]

        def rss
          resident, = Native.process_sizes
          resident && (resident * 1024)
        end

        private

        def files(names)
          Native.open_files.each_with_index.map do |(number, flags, type, name), index|
            facts = { _id: "lsof:#{index}", type: "lsof", fd: "#{number}#{mode(flags)}",
                      fd_type: TYPES.fetch(type, "unknown") }
            facts[:fd_name] = Printable.utf8(name) if names
            ["lsof", JSON.generate(facts)]
          end
        end

        def mode(flags)
          MODES[flags & ACCESS] if flags
        end

        # In KiB, as text.
        def sizes
          resident, address_space = Native.process_sizes
          return [] unless resident

          [["ps", JSON.generate(_id: "ps", type: "ps", rss: resident.to_s, vsize: address_space.to_s)]]
        end
      end
    end
  end
end

# frozen_string_literal: true

module Memprof
  module Dump
    # A dump for people: one object after another, indented. Data about the dump itself, such as its first
    # line, is left out.
    module Pretty
      ABOUT_THE_DUMP = %w[header footer].freeze
      ROOTS = "_ROOTS_"
      private_constant :ABOUT_THE_DUMP, :ROOTS

      class << self
        def copy(file, io)
          file.set_encoding(Encoding::UTF_8)
          is_array = file.getc == "["
          file.rewind
          is_array ? array(file, io) : lines(file, io)
        end

        private

        def lines(file, io)
          file.each_line do |line|
            record = JSON.parse(line)
            io.write("#{JSON.pretty_generate(record)}\n") unless ABOUT_THE_DUMP.include?(record["type"])
          end
        end

        # The dump is one array: each line starts with a bracket or a comma, and the last one is a bracket.
        def array(file, io)
          separator = "["
          file.each_line do |line|
            next if line.start_with?("]")

            record = JSON.parse(line[1..])
            next if record["id"] == ROOTS

            io.write("#{separator}\n#{JSON.pretty_generate(record).gsub(/^/, "  ")}")
            separator = ","
          end
          io.write(separator == "[" ? "[]\n" : "\n]\n")
        end
      end
    end
  end
end

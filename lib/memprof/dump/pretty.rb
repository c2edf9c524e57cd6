# frozen_string_literal: true

require "json"

module Memprof
  module Dump
    # A dump for people: one object after another, indented. The first and the last line, which are about the
    # dump itself, are left out.
    #
    # @api private
    module Pretty
      ABOUT_THE_DUMP = %w[header footer].freeze
      private_constant :ABOUT_THE_DUMP

      # @param file [IO] a dump, one compact line each
      # @param io [#write] where to print it
      # @return [void]
      def self.copy(file, io)
        file.set_encoding(Encoding::UTF_8)
        file.each_line do |line|
          record = JSON.parse(line)
          io.write("#{JSON.pretty_generate(record)}\n") unless ABOUT_THE_DUMP.include?(record["type"])
        end
      end
    end
  end
end

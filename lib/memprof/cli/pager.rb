# frozen_string_literal: true

require "shellwords"

module Memprof
  module CLI
    # Shows output longer than the screen in a pager: $PAGER, or less.
    module Pager
      USUAL = "less -FRX"
      private_constant :USUAL

      def self.show(text, rows)
        return false if text.count("\n") < rows

        command = ENV.fetch("PAGER", USUAL)
        return false if command.strip.empty? || command.strip == "cat"

        through(command, text)
      end

      def self.through(command, text)
        # LESS applies to a less called without options.
        pager = IO.popen({ "LESS" => ENV["LESS"] || "FRX" }, Shellwords.split(command), "w")
        # Ctrl-C also goes to the pager.
        before = Signal.trap("INT") { nil }
        feed(pager, text)
        true
      rescue SystemCallError, ArgumentError
        false # no pager
      ensure
        Signal.trap("INT", before || "DEFAULT") if pager
      end
      private_class_method :through

      def self.feed(pager, text)
        pager.write(text)
      rescue Errno::EPIPE
        nil # the pager was closed
      ensure
        finish(pager)
      end
      private_class_method :feed

      def self.finish(pager)
        pager.close # waits for the pager
      rescue Errno::EPIPE
        nil
      end
      private_class_method :finish
    end
  end
end

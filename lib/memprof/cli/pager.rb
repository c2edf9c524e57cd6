# frozen_string_literal: true

require "shellwords"

module Memprof
  module CLI
    # Shows what is longer than the screen through a pager: PAGER's, or less.
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
        # LESS is for a less that is called without options.
        pager = IO.popen({ "LESS" => ENV["LESS"] || "FRX" }, Shellwords.split(command), "w")
        # The key that interrupts is the pager's, too.
        before = Signal.trap("INT") { nil }
        feed(pager, text)
        true
      rescue SystemCallError, ArgumentError
        false # there is none
      ensure
        Signal.trap("INT", before || "DEFAULT") if pager
      end
      private_class_method :through

      def self.feed(pager, text)
        pager.write(text)
      rescue Errno::EPIPE
        nil # read enough
      ensure
        finish(pager)
      end
      private_class_method :feed

      def self.finish(pager)
        pager.close # waits for it
      rescue Errno::EPIPE
        nil
      end
      private_class_method :finish
    end
  end
end

# frozen_string_literal: true

module Memprof
  module OnSignal
    # A signal handler that lets the one before it have the signal, too.
    module Trap
      def self.set(signal)
        previous = nil
        previous = ::Signal.trap(signal) do |number|
          yield
          chain(previous, number)
        end
      rescue ArgumentError, SystemCallError => e
        OnSignal.warn_user("no dump on signal #{signal}: #{e.message}")
      end

      # Calls what was there before. Names of Ruby's and the system's defaults stand for no code: for the
      # signals that may be chosen they mean to ignore it, or to end the program, which a request for a dump
      # must not.
      def self.chain(previous, number)
        case previous
        when "EXIT" then exit
        when String, nil then nil
        else previous.call(number)
        end
      end
    end
  end
end

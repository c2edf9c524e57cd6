# frozen_string_literal: true

require_relative "../native"
require_relative "after_reply"

module Memprof
  class Trace
    # A process that comes into being as a copy of one that traces: the traces are the parent's, and their
    # hooks must not slow down the child. (In one that is not made through this, as by `daemon`, they stay
    # until it traces something itself, and count for nobody.)
    module NewProcess
      def _fork
        pid = super
        NewProcess.start_anew if pid.zero?
        pid
      end

      def self.start_anew
        Native::Trace.after_fork
        Tracers.start_anew
        Tracers::Hooks.start_anew
        Tracers::Follower.start_anew
        AfterReply.start_anew
      end
    end

    Process.singleton_class.prepend(NewProcess)
  end
end

# frozen_string_literal: true

require_relative "../live_page"

module Memprof
  class Web
    module Pages
      # Has the process track objects.
      class StartTracking < LivePage
        at "/live/tracking/start", verb: "POST"

        def act(request)
          sample = field(request, "sample", 1, Memprof::Session::MAX_SAMPLE)
          stack = field(request, "stack", 1, Memprof::Session::MAX_STACK)
          done(live.tracking.start(sample: sample, stack: stack) ? :started : :already)
        end
      end

      # Has it stop.
      class StopTracking < LivePage
        at "/live/tracking/stop", verb: "POST"

        def act(_request) = done(live.tracking.stop ? :stopped : :idle)
      end

      # Has it forget what it saw.
      class ClearTracking < LivePage
        at "/live/tracking/clear", verb: "POST"

        def act(_request)
          live.tracking.clear
          done(:cleared)
        rescue NotRunning
          done(:idle)
        end
      end
    end
  end
end

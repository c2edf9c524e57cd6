# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/traces/1/requests/12`: all that is known of one request, by its line in the file.
      class TraceRequest < RecordPage
        at "/traces/:id/requests/:line"

        def title = request[:action]

        def breadcrumbs = [*super, [record.name, within]]

        def data
          { **request.except(:start), requests: content.size, record: content.record(request[:line]) }
        end

        private

        def request
          @request ||= content.at(Integer(captures.fetch(:line), 10, exception: false)) ||
            raise(NotFound, "line #{captures.fetch(:line)} is not a request")
        end
      end
    end
  end
end

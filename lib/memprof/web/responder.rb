# frozen_string_literal: true

require "json"
require_relative "page"
require_relative "response"
require_relative "export"
require_relative "view"

module Memprof
  class Web
    # Finds the page of a request, and answers with it as HTML, JSON, or another export.
    class Responder
      def initialize(router, heaps, request)
        @router = router
        @heaps = heaps
        @request = request
      end

      def response
        match = @router.find(@request.verb, @request.path)
        @format = match.format
        @heap = match.captures[:heap]
        page = match.page.new(@heaps, match.captures, @request.params)
        return redirect(page.public_send(match.action, @request)) if match.action

        @heaps.using(*page.subjects) { show(page) }
      rescue NotFound => e
        error_page(404, "Not found", e)
      rescue BadRequest => e
        error_page(400, "Bad request", e)
      rescue Opening => e
        opening(e.entry)
      rescue Conflict => e
        error_page(409, "Conflict", e)
      rescue Memprof::Error => e
        error_page(500, "Failed", e)
      end

      private

      def show(page)
        target = page.redirect
        return redirect(target) if target

        page.download || render(200, page)
      end

      def redirect(path)
        path, query = path.split("?", 2)
        path = "#{path.chomp("/")}.#{@format}" if @format
        Response.redirect([@request.script_name + path, query].compact.join("?"))
      end

      # A heap that is still opening is not an error: the page reloads until it is open.
      def opening(entry)
        response = render(202, WaitingPage.new(@heaps, entry))
        response.headers["retry-after"] = "1"
        response.headers["refresh"] = "1" unless @format
        response
      end

      def error_page(status, title, error) = render(status, ErrorPage.new(@heaps, title, error, @heap))

      def render(status, page)
        data = page.data
        return Response.json(status, data) if @format == "json"

        view = View.new(page, @request, data)
        return Response.html(status, view.render(page.view)) unless @format
        return Export.new(view).response(@format) if status == 200

        Response.text(status, "#{data[:error] || page.title}\n")
      end
    end

    # The page shown after an error.
    class ErrorPage < Page
      attr_reader :title, :entry

      def initialize(heaps, title, error, heap)
        super(heaps)
        @entry = heaps.find { |entry| entry.id.to_s == heap }
        @title = title
        @error = error
      end

      def data = { error: @error.message }

      def view = "error"
    end

    # The page shown while a heap is opening.
    class WaitingPage < Page
      def initialize(heaps, entry)
        super(heaps)
        @entry = entry
      end

      def title = "Opening #{@entry.name}"

      def data
        progress = @entry.progress
        { opening: { heap: @entry.id, name: @entry.name, stage: progress.stage, done: progress.done,
                     total: progress.total } }
      end

      def view = "waiting"
    end
  end
end

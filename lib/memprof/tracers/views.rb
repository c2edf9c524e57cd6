# frozen_string_literal: true

require_relative "client"
require_relative "../paths"

module Memprof
  module Tracers
    # `views`: templates, partials and layouts of Action View (thus also those of jbuilder, haml and slim),
    # view components, and serializers of active_model_serializers, as reported by their notifications. Each
    # has its time without that of nested ones.
    class Views < Client
      TEMPLATES = %w[
        render_template.action_view render_partial.action_view render_collection.action_view
        render_layout.action_view
      ].freeze
      SERIALIZER = "render.active_model_serializers"
      COMPONENT = "render.view_component"
      # Maximum number listed by name; the rest is summed up.
      LISTED = 100
      # The name of the rest.
      REST = "(others)"
      # Set in the fiber: the innermost rendering.
      INSIDE = :memprof_view
      private_constant :TEMPLATES, :SERIALIZER, :COMPONENT, :LISTED, :REST, :INSIDE

      # A running rendering: its subscribers, start, notification and enclosing rendering.
      Call = Struct.new(:subscribers, :began, :waited, :event, :outer, :inner)
      private_constant :Call

      class << self
        # Handles notifications, as an ActiveSupport subscriber object. Never raises into the program.
        def start(_name, _id, payload)
          subscribers = running
          return if subscribers.empty?

          begin
            guard do
              call = Call.new(subscribers, nil, nil, payload, Thread.current[INSIDE], 0.0)
              Thread.current[INSIDE] = call
              call.waited = Native.gvl_wait
              call.began = Clock.now
            end
            started = true
          ensure
            abandon(payload) unless started # interrupted: no notification ends it
          end
        end

        def finish(name, _id, payload)
          call = call_of(payload)
          return unless call

          guard do
            Thread.current[INSIDE] = call.outer
            record(call.subscribers, call.began, call.waited) do |views, time, _|
              views.rendered(name, payload, [time - call.inner, 0.0].max)
            end
            call.outer.inner += Clock.now - call.began if call.outer
          end
        end

        def inside = INSIDE

        def subscribe
          [*TEMPLATES, SERIALIZER, COMPONENT].each do |name|
            ::ActiveSupport::Notifications.subscribe(name, self)
          end
        end
      end

      # Prepended to ActiveSupport::Notifications to detect that it is loaded.
      module Notifications
        def self.prepended(_)
          super
          Views.subscribe
        end
      end
      private_constant :Notifications

      hook "ActiveSupport::Notifications", Notifications

      def initialize
        super
        @total = {}
        @templates = {}
        @serializers = {}
      end

      def rendered(event, payload, time)
        kind = event == SERIALIZER ? @serializers : @templates
        name = name(event, payload)
        name = REST unless kind.key?(name) || kind.size < LISTED
        count(@total, time, 0.0)
        count(kind[name] ||= {}, time, 0.0)
      end

      def report
        return {} if @total.empty?

        { **@total, "templates" => @templates, "serializers" => @serializers }.reject { |_, part| part == {} }
      end

      private

      def name(event, payload)
        case event
        when SERIALIZER then (payload[:serializer] || "none").to_s
        when COMPONENT then (payload[:name] || payload[:identifier]).to_s
        else template(payload[:identifier])
        end
      end

      # Renderings without a file, such as `render plain:`, have a description instead.
      def template(identifier)
        return "(unnamed)" if identifier.nil?

        identifier = Printable.utf8(identifier)
        identifier.start_with?("/") ? Paths.short(identifier) : identifier
      end
    end
  end
end

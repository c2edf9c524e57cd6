# frozen_string_literal: true

require "etc"
require_relative "../printable"

module Memprof
  module Agent
    # Names for a process: which service, release, host and worker it is. All come from the environment, from
    # the application's name and from the titles that servers give their processes.
    class Labels
      RELEASES = %w[MEMPROF_RELEASE GIT_SHA HEROKU_SLUG_COMMIT].freeze
      REVISION = "REVISION"
      # Titles of workers, such as `puma: cluster worker 0: 4711 [shop]`, `unicorn worker[3]`, and
      # `sidekiq 6.4.1 shop [0 of 5 busy]`.
      WORKERS = {
        /\Apuma: cluster worker (?<number>\d+)/ => "puma",
        /\A(?<server>unicorn|pitchfork)(?:_rails)?\b.*? worker\[(?<number>\d+)\]/ => nil,
        /\Asidekiq\b/ => "sidekiq"
      }.freeze
      # Programs that run an application, which is named after its directory.
      SERVERS = %w[puma rackup unicorn unicorn_rails pitchfork sidekiq thin falcon passenger rails].freeze
      # Directories of a deployment, which say nothing about the application.
      DEPLOYED = /\A(?:current|releases?|\d+|)\z/
      # Maximum characters of a label.
      LONGEST = 200
      # The program as it was called: servers change the title of their processes.
      PROGRAM = $PROGRAM_NAME.dup.freeze
      private_constant :RELEASES, :REVISION, :WORKERS, :SERVERS, :DEPLOYED, :LONGEST, :PROGRAM

      # `root` is the directory of the application, where capistrano and others write the file REVISION.
      def initialize(settings = {}, env: ENV, root: nil, program: PROGRAM)
        @settings = settings
        @env = env
        @root = root || Dir.pwd
        @program = Printable.utf8(program)
      rescue SystemCallError
        @root = nil # the working directory was removed
      end

      def to_h
        { service: service, release: release, host: host, worker: worker, pid: Process.pid }
      end

      # For the log: it shows what a deployment does not say.
      def describe = "service #{service}, release #{release || "unknown"}, worker #{worker}"

      def service
        name = @settings[:service] || variable("OTEL_SERVICE_NAME") || resource("service.name") ||
          rails_name || program_name
        label(name)
      end

      # Nil if unknown.
      def release
        found = @settings[:release] || RELEASES.lazy.filter_map { |name| variable(name) }.first ||
          revision || resource("service.version")
        label(found)
      end

      def host = label(@host ||= Etc.uname[:nodename])

      # A number that a restarted worker has again, or else the process id.
      def worker(title = $PROGRAM_NAME)
        WORKERS.each do |form, server|
          match = form.match(Printable.utf8(title)) or next
          parts = match.named_captures
          return "#{server || parts["server"]} #{parts["number"] || Process.pid}"
        end
        Process.pid.to_s
      end

      private

      # An attribute of OTEL_RESOURCE_ATTRIBUTES: `name=value,name=value`, with percent encoding.
      def resource(name)
        pairs = Printable.utf8(@env["OTEL_RESOURCE_ATTRIBUTES"]).split(",").map { |pair| pair.split("=", 2) }
        value = pairs.find { |key, _| key.to_s.strip == name }&.last.to_s.strip
        value = value.b.gsub(/%(\h\h)/) { $1.hex.chr }.force_encoding(Encoding::UTF_8)
        value unless value.empty?
      end

      def rails_name
        application = ::Rails.application if defined?(::Rails.application)
        name = application&.class&.name
        name&.delete_suffix("::Application")&.gsub(/([a-z\d])([A-Z])/, '\1_\2')&.downcase
      end

      def program_name
        name = File.basename(@program.split.first.to_s).delete_suffix(".rb").delete_suffix(":")
        name = "ruby" if ["", "-e", "-"].include?(name)
        (directory_name if SERVERS.include?(name)) || name
      end

      def directory_name = @root && Printable.utf8(@root).split("/").grep_v(DEPLOYED).last

      def root = (::Rails.root if defined?(::Rails.root)) || @root

      def variable(name)
        value = Printable.utf8(@env[name])
        value unless value.strip.empty?
      end

      # Read once: a deployment replaces the directory, and this process runs the old code.
      def revision
        return @revision if defined?(@revision)

        @revision = read_revision
      end

      def read_revision
        return unless root

        File.open(File.join(root.to_s, REVISION), File::RDONLY | File::NONBLOCK) do |file|
          text = Printable.utf8(file.read(LONGEST)).lines.first.to_s.strip if file.stat.file?
          text unless text.to_s.empty?
        end
      rescue SystemCallError
        nil
      end

      def label(value)
        Printable.line(Printable.utf8(value.to_s))[0, LONGEST].freeze if value
      end
    end
  end
end

# frozen_string_literal: true

# Not every example needs every Ruby. `bin/test` runs those of a tag on fewer.
module WhichRubies
  FILES = {
    # The outcome does not depend on the Ruby: browsers and viewers, pages, documents, the command's texts,
    # packaging, what hostile users and files do. The first Ruby is enough.
    once: %w[
      docs_spec.rb exports/**
      integration/{web_browser,web_appearance,web_pictures,web_library}*_spec.rb integration/web_spec.rb
      integration/cli_{check,completion,convert,defaults,escapes,heap,heap_terminal,help,options}_spec.rb
      integration/cli_run_{output,quiet}_spec.rb
      integration/hostile_{attach,dumps,pids,sockets}_spec.rb
      integration/{agent_leaks,examples,foreign_processes,json_schemas,mcp,native_gem,problem_matcher}_spec.rb
      integration/{random_signals,sidecar,unwritable,verdict}_spec.rb
      memprof/{file_kind,library,output,paths}_spec.rb memprof/rails/{arguments,routes}_spec.rb
      memprof/{mcp,web}/** memprof/agent/{trends,receivers}/**
      memprof/compat/{chap,filter,uploader}_spec.rb memprof/compat/memdump/**
      memprof/dump/{file_system,options,target}_spec.rb memprof/rspec/{costly_examples,stability}_spec.rb
    ],
    # The outcome depends on the libraries of the system and of gems rather than on the VM. The oldest Ruby
    # and the one of the newest Debian are enough.
    twice: %w[
      integration/clients/** integration/{cli,malloc,tracer}_*_spec.rb
      integration/{core_blocks,debugger,signal_handlers,unknown_counts}_spec.rb
      memprof/{cli,malloc,minitest,sidekiq,trace,tracer}_spec.rb puma/**
      memprof/{cli,compat,malloc,rspec,testing,trace,tracers}/**
    ]
  }.freeze

  SPECS = File.expand_path("..", __dir__)
  private_constant :SPECS

  # Whether the files of a tag include a path.
  def self.matcher(tag)
    ->(path) { FILES.fetch(tag).any? { |glob| File.fnmatch?(glob, below_specs(path), File::FNM_EXTGLOB) } }
  end

  def self.below_specs(path) = File.expand_path(path).delete_prefix("#{SPECS}/")
  private_class_method :below_specs
end

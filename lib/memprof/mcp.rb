# frozen_string_literal: true

module Memprof
  # The server of `memprof mcp`, through which a language model asks memprof: {Protocol} speaks JSON-RPC,
  # {Tools} lists what can be asked, {Runner} has the commands answer, {Answer} makes that short and safe.
  #
  # @api private
  module MCP
    autoload :Answer, "#{__dir__}/mcp/answer"
    autoload :Captured, "#{__dir__}/mcp/captured"
    autoload :Hidden, "#{__dir__}/mcp/hidden"
    autoload :Parameter, "#{__dir__}/mcp/parameter"
    autoload :ProcessList, "#{__dir__}/mcp/process_list"
    autoload :Protocol, "#{__dir__}/mcp/protocol"
    autoload :RecordedBoot, "#{__dir__}/mcp/recorded_boot"
    autoload :Runner, "#{__dir__}/mcp/runner"
    autoload :TakenDump, "#{__dir__}/mcp/taken_dump"
    autoload :Tool, "#{__dir__}/mcp/tool"
    autoload :Tools, "#{__dir__}/mcp/tools"
  end
end
